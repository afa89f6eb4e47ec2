"""A run of `tracekit profile`, from the workload that is built to all that is asked of its forms."""

import datetime
import math
from pathlib import Path
from statistics import median
from typing import Any

from msgspec.structs import replace

from tracekit import __version__, store
from tracekit.errors import NothingCompiledError
from tracekit.measure import device as devices
from tracekit.measure import failures, forms, recording, recording_cost, timing
from tracekit.measure import plan as planning
from tracekit.measure.building import choose_request_size
from tracekit.measure.compilation import check_compilers, idle_mode
from tracekit.measure.gpu_state import GpuWatch
from tracekit.measure.observers import CompilationObserver, ProvenanceObserver, with_outputs
from tracekit.measure.plan import Plan
from tracekit.measure.process import call_in_one_chunk
from tracekit.measure.ranks import Ranks
from tracekit.measure.run_so_far import with_form, with_notes
from tracekit.model.progress import Progress
from tracekit.model.quartiles import HostTimes, Quartiles
from tracekit.model.run import FormResult, Recording, RecordingKind, Run
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo
from tracekit.report.words.progress import ONE_CALL
from tracekit.tracefile.publish import publish
from tracekit.workloads.own_errors import their_calls
from tracekit.workloads.registry import Builder, look_into
from tracekit.workloads.scopes import build_scoped, repeated_parts
from tracekit.workloads.sizes import way_to_need_less

#: What is recorded of each form, and how many calls at least and at most: of short ones, which differ most, as many as
#: take so long.
RECORDINGS: tuple[tuple[RecordingKind, int, int], ...] = (("light", 2, 7), ("rich", 1, 3))
RECORDED_US = 100_000.0


def build(
    builder: Builder, info: WorkloadInfo, request: Request, progress: Progress, ranks: Ranks, *, compiled: bool
) -> tuple[BuiltWorkload, str]:
    """The workload, and why in this size: of several ranks that which the first has room for."""
    progress.stage("build")
    device = devices.pick_device()
    if "download" in info.takes:
        progress.phase(f"reading the configuration of {info.name}")
    info = look_into(info, request)
    size, reason = ranks.decided(choose_request_size(info, request, device, devices.free_memory_bytes(device)))
    if compiled:
        check_compilers(device)
    progress.phase(f"building {info.name} ({size})")
    with recording.checked_meanwhile(device), failures.out_of_memory_explained(size, way_to_need_less(info, size)):
        workload = build_scoped(builder, info, request, size, device, progress)
        if workload.trial:
            progress.detail(ONE_CALL)
            workload.trial()
        return workload, reason


def measure_forms(
    plan: Plan, workload: BuiltWorkload, reason: str, draft: Path, progress: Progress, ranks: Ranks
) -> Run:
    """The run of a workload that is built; the manifest in `draft` is rewritten after every part."""
    run = Run(
        schema="tracekit.run/1",
        status="incomplete",
        tracekit=__version__,
        command=plan.command,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        settings=replace(workload.settings, nproc=plan.request.nproc),
        size_reason=reason,
        environment=devices.read_environment(workload.settings.device),
        components=workload.components,
        forms=(),
        order=(),
        notes=workload.notes,
        repeated_parts=repeated_parts(workload),
    )
    if "compiled" in plan.forms and (idle := idle_mode(workload.settings)):
        run = with_notes(run, idle)
    store.save(run, draft)
    return call_in_one_chunk(lambda: _run_forms(plan, workload, run, draft, progress, ranks))


def _run_forms(plan: Plan, workload: BuiltWorkload, run: Run, draft: Path, progress: Progress, ranks: Ranks) -> Run:
    """Warms up, times, records and asks further of each form; of the eager one alone, whichever were asked for, where
    torch.compile compiles nothing."""
    settings = workload.settings
    warmed_up_at = None
    if plan.warmup:
        # The workload's own sizes, for those that were not asked for, are known only now.
        planning.refuse_timed_sizes(plan.warmup, settings)
        warmed_up_at = planning.warmup_request(workload.info, plan.request, plan.warmup)
    timings, rule = timing.Timings(), planning.stopping_rule(plan.timing, plan.request, settings)
    compilation = CompilationObserver(workload, timings, warmed_up_at, plan.warmup)
    made = tuple(compilation.watched(forms.MAKERS[name](workload)) for name in plan.forms)
    provenance = ProvenanceObserver(workload, plan.provenance)
    gpu = GpuWatch(settings.device)
    mend = way_to_need_less(workload.info, settings.size, settings)

    def warmed_up(run: Run, form: forms.Form) -> Run:
        progress.stage(f"warm-up {form.name}")
        try:
            with provenance.watching(form.name), gpu.warming(form.name):
                warm = forms.warm_up(compilation.warming(form), progress, ranks)
        except NothingCompiledError:
            run = compilation.explained(run)
        else:
            warmed = FormResult(form.name, warm.wall_us, (), None, None, warm.compilation, ())
            run = compilation.added(replace(run, forms=(*run.forms, warmed)))
            run = compilation.with_uncalled(run, form)
        store.save(run, draft)
        return run

    with their_calls(settings, failures.is_out_of_memory), failures.out_of_memory_explained(settings.size, mend):
        try:
            for form in made:
                run = warmed_up(run, form)
            if run.not_compiled is not None:
                made = tuple(form for form in made if form.name == "eager")
                if not made:
                    made = (compilation.watched(forms.eager_form(workload)),)
                    run = warmed_up(run, *made)
            if not plan.warmup:
                gpu.settle(made)
            compilation.begin("timed")
            progress.stage("timing", at_most_seconds=None if rule.rounds else rule.budget_seconds)
            with gpu.timing(made) as timed:
                timing.time_forms(timed, rule, settings.seed, timings, progress, ranks=ranks)
        finally:
            # Also on Ctrl-C: the calls that were timed are kept.
            for each in run.forms:
                run = with_form(run, each.name, **_timed(each, timings, rule), **gpu.seen(each.name))
            run = compilation.added(replace(run, order=tuple(timings.order)))
            store.save(run, draft)
        compilation.begin("later")
        for number, form in enumerate(made):
            progress.stage(f"recording {form.name}", like=[f"recording {each.name}" for each in made[:number]])
            if not number:
                cost = recording_cost.measure_recording_cost(settings.device, progress, triton=len(made) > 1)
                run = replace(run, recording_cost=cost)
            recordings: tuple[Recording, ...] = ()
            for kind, least, most in RECORDINGS:
                steps = min(max(least, math.ceil(RECORDED_US / median(timings.wall_us[form.name]))), most)
                recordings = (*recordings, _record(form, kind, steps, run, draft, progress, ranks))
                run = with_form(run, form.name, recordings=recordings)
                store.save(run, draft)
        progress.stage("provenance")
        for form in made:
            told, sources = provenance.ask(form, draft, progress), provenance.keep_sources(form, draft)
            run = with_form(run, form.name, provenance=told, kernel_sources=sources)
            store.save(run, draft)
        progress.stage("outputs")
        run = with_notes(run, *provenance.notes)
        if plan.numerics:
            run = with_outputs(run, workload, made, gpu.calling_bytes("eager"), draft, progress, ranks)
    return compilation.added(run)


def _timed(form: FormResult, timings: timing.Timings, rule: StoppingRule) -> dict[str, Any]:
    """What timing found out of a form, by its fields."""
    name, compilation = form.name, form.compilation
    if compilation:
        compilation = replace(compilation, during_timing=timings.compilations.get(name, 0))
    return {
        "wall_us": timings.of_rounds(name, "wall_us"),
        "device_us": timings.of_rounds(name, "device_us") or None,
        "own_wall_us": timings.of_rounds(name, "own_us"),
        "own_peak_memory_bytes": timings.most(name, "own_peak_bytes"),
        "peak_memory_bytes": timings.most(name, "peak_bytes"),
        "host": timings.middle(HostTimes, name, "host_us"),
        "collecting": timings.middle(Quartiles, name, "collecting_us"),
        "compilation": compilation,
        "timing": timings.of(name, rule) if name in timings.timed else None,
    }


def _record(
    form: forms.Form, kind: RecordingKind, steps: int, run: Run, draft: Path, progress: Progress, ranks: Ranks
) -> Recording:
    unpublished = draft / f".{form.name}-{kind}.json"
    name = f"{form.name}-{kind}.json.gz"
    about = {
        "tracekit": run.tracekit,
        "workload": run.settings.workload,
        "form": form.name,
        "recording": kind,
        "device": run.settings.device,
        "mode": run.settings.mode if form.name == "compiled" else None,
    }
    try:
        marks = recording.record(form, kind, steps, unpublished, progress, ranks)
        size = publish(unpublished, draft / name, metadata=about, marks=marks)
    finally:
        # Also on Ctrl-C: half a trace under a hidden name is of no use to anybody.
        unpublished.unlink(missing_ok=True)
    return Recording(kind=kind, path=name, steps=steps, bytes=size, host_us=marks.host_us, off_cpu_us=marks.off_cpu_us)
