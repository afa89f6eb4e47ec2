"""What `tracekit profile` does, step by step; imported only when something is run."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tracekit import __version__, store
from tracekit.errors import CompileError, NothingCompiledError
from tracekit.measure import plan as planning
from tracekit.measure.building import check_cache, choose_request_size, quiet_libraries
from tracekit.measure.observers import CompilationObserver, FormObserver, ProvenanceObserver, with_form, with_notes
from tracekit.measure.plan import Plan
from tracekit.measure.process import call_in_one_chunk, output_kept, warnings_collected
from tracekit.measure.timing_process import STARTS, measure_in_processes, verify_advice
from tracekit.model.host_speed import HostTimes
from tracekit.model.progress import Progress
from tracekit.model.quartiles import Quartiles
from tracekit.model.run import FormResult, Recording, RecordingKind, Run
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo
from tracekit.reading.reports import refuse_report_there
from tracekit.report.words.progress import ASKING_WHETHER_KERNELS_ARE_SEEN, LOADING, ONE_CALL
from tracekit.statements.noted import Warned
from tracekit.tracefile.publish import publish
from tracekit.wings import load
from tracekit.workloads.own_errors import their_calls
from tracekit.workloads.registry import Builder, check_scope, find, load_builder, look_into
from tracekit.workloads.sizes import check_request, way_to_need_less

if TYPE_CHECKING:
    from tracekit.measure import forms, timing
    from tracekit.measure.ranks import Ranks

#: What is recorded of each form, and how many steps of it.
#: How many calls each recording holds at least and at most: of short ones, which differ most, as many as take so long.
RECORDINGS: tuple[tuple[RecordingKind, int, int], ...] = (("light", 2, 7), ("rich", 1, 3))
RECORDED_US = 100_000.0


def stages_of(plan: Plan) -> tuple[str, ...]:
    """What the plan goes through, in this order, as far as it is known before anything is built."""
    starts = [kind for name, kind in STARTS if name in plan.forms] if plan.timing.startup else []
    return (
        "load",
        "build",
        *(f"warm-up {name}" for name in plan.forms),
        "timing",
        *(f"recording {name}" for name in plan.forms),
        *(["provenance"] if plan.provenance else []),
        *(["outputs"] if plan.numerics else []),
        *starts,
        *(f"process {number}" for number in range(1, plan.timing.repeats + 1)),
        *(["advice"] if plan.verify else []),
    )


def profile(plan: Plan, progress: Progress, on_part: Callable[[Path], None]) -> Path:
    """Measures and writes the run folder; returns its path.

    After an error or an interrupt `on_part` is told where the part of the run lies that was measured until then; if
    there is none, nothing is left. Raises TracekitError for whatever the user can mend.
    """
    info = find(plan.request.workload)
    asked = replace(plan.request, scope=check_scope(info, plan.request.scope))
    check_request(info, plan.request)
    planning.refuse_alone(plan.request)
    if plan.warmup:
        planning.warmup_request(info, plan.request, plan.warmup)
        planning.refuse_warmup_beside_processes(plan.timing, verify=plan.verify)
    if plan.request.nproc:
        planning.jobs_wing()
        planning.refuse_processes_of_ranks(plan)
    if planning.rank_here() is not None:
        joined: Path = load(planning.jobs_wing().join)(plan, asked, progress, on_part)
        return joined
    folder = planning.place_of_run(plan)
    if len(plan.forms) > 1:
        refuse_report_there(folder, force=plan.force)
    plan = replace(plan, request=asked)
    with store.begun(folder, force=plan.force) as draft:
        with part_kept(draft, on_part):
            if plan.request.nproc:
                run = load(planning.jobs_wing().measure)(plan, draft, progress)
            else:
                run = built_and_measured(plan, info, plan.request, draft, progress, None)
        store.finish(run, draft)
    return folder


def profile_built(plan: Plan, workload: BuiltWorkload, progress: Progress) -> Path:
    """The same for a workload that is in memory already, into `plan.out`, without fresh processes: they could not build
    it."""
    from tracekit.measure.recording import checked_meanwhile

    assert plan.out is not None
    progress.stages(stages_of(plan)[1:])
    progress.stage("build")
    with store.begun(plan.out, force=plan.force, ways=store.IN_A_PROGRAM) as draft:
        with part_kept(draft, lambda _part: None):
            with output_kept(draft / store.OUTPUT), warnings_collected() as warned:
                with checked_meanwhile(workload.settings.device):
                    progress.phase(ASKING_WHETHER_KERNELS_ARE_SEEN)
                reason = workload.info.sizes[workload.settings.size]
                run = _measure_forms(plan, workload, reason, draft, progress, None)
            run = with_notes(run, *map(Warned, warned))
        store.finish(run, draft)
    return plan.out


@contextmanager
def part_kept(draft: Path, on_part: Callable[[Path], None]) -> Iterator[None]:
    """What was measured until an error is kept, and nothing where nothing was."""
    try:
        yield
    except BaseException as error:
        if store.holds_measurements(draft):
            if isinstance(error, Exception):
                store.mark_failed(draft, error)
            on_part(draft)
        else:
            store.clear(draft, but_log=isinstance(error, CompileError))
        if isinstance(error, CompileError) and (draft / store.OUTPUT).is_file():
            error.below = (*error.below, f"  torch's whole text: {draft / store.OUTPUT}")
        raise


def built_and_measured(
    plan: Plan, info: WorkloadInfo, request: Request, draft: Path, progress: Progress, ranks: Ranks | None
) -> Run:
    """Builds, warms up, times and records; the manifest in `draft` is rewritten after every part. `ranks` are those
    that do the same meanwhile."""
    check_cache()
    quiet_libraries()
    progress.stages(stages_of(plan))
    progress.stage("load")
    progress.phase(LOADING)
    builder = load_builder(info)
    # Imports torch, of which the line above says how to install it where it is missing.
    from tracekit.measure import device

    with output_kept(draft / store.OUTPUT), warnings_collected() as warned:
        workload, reason = _build(builder, info, request, progress, ranks, compiled="compiled" in plan.forms)
        run = _measure_forms(plan, workload, reason, draft, progress, ranks)
        if plan.timing.startup or plan.timing.repeats or plan.verify:
            # Fresh processes need the device's memory more than this one does by now.
            del workload
            device.release_memory(run.settings.device)
            for larger in measure_in_processes(plan.timing, request, run, draft, progress):
                run = larger
                store.save(run, draft)
        if plan.verify and run.not_compiled is None:
            run = verify_advice(plan.timing, request, run, draft, progress)
    return with_notes(run, *map(Warned, warned))


def _build(
    builder: Builder, info: WorkloadInfo, request: Request, progress: Progress, ranks: Ranks | None, *, compiled: bool
) -> tuple[BuiltWorkload, str]:
    """The workload, and why in this size: of several ranks that which the first has room for."""
    from tracekit.measure import device as devices
    from tracekit.measure import failures
    from tracekit.measure.compilation import check_compilers
    from tracekit.measure.recording import checked_meanwhile
    from tracekit.workloads.scopes import build_scoped

    progress.stage("build")
    device = devices.pick_device()
    if "download" in info.takes:
        progress.phase(f"reading the configuration of {info.name}")
    info = look_into(info, request)
    size, reason = choose_request_size(info, request, device, devices.free_memory_bytes(device))
    if ranks is not None:
        size, reason = ranks.decided((size, reason))
    if compiled:
        check_compilers(device)
    progress.phase(f"building {info.name} ({size})")
    with checked_meanwhile(device), failures.out_of_memory_explained(size, way_to_need_less(info, size)):
        workload = build_scoped(builder, info, request, size, device, progress)
        if workload.trial:
            progress.detail(ONE_CALL)
            workload.trial()
        return workload, reason


def _measure_forms(
    plan: Plan, workload: BuiltWorkload, reason: str, draft: Path, progress: Progress, ranks: Ranks | None
) -> Run:
    from tracekit.measure.compilation import idle_mode
    from tracekit.measure.device import read_environment
    from tracekit.measure.ranks import ALONE
    from tracekit.workloads.scopes import repeated_parts

    run = Run(
        schema="tracekit.run/1",
        status="incomplete",
        tracekit=__version__,
        command=plan.command,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        settings=replace(workload.settings, nproc=plan.request.nproc),
        size_reason=reason,
        environment=read_environment(workload.settings.device),
        components=workload.components,
        forms=(),
        order=(),
        notes=workload.notes,
        repeated_parts=repeated_parts(workload),
    )
    if "compiled" in plan.forms and (idle := idle_mode(workload.settings)):
        run = with_notes(run, idle)
    store.save(run, draft)
    return call_in_one_chunk(lambda: _run_forms(plan, workload, run, draft, progress, ranks or ALONE))


def _run_forms(plan: Plan, workload: BuiltWorkload, run: Run, draft: Path, progress: Progress, ranks: Ranks) -> Run:
    """Warms up, times, records and asks further of each form; of the eager one alone, whichever were asked for, where
    torch.compile compiles nothing."""
    from tracekit.measure import failures, forms, recording_cost, timing

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
    observer = FormObserver(workload, plan.numerics)
    mend = way_to_need_less(workload.info, settings.size, settings)

    def warmed_up(run: Run, form: forms.Form) -> Run:
        progress.stage(f"warm-up {form.name}")
        try:
            with provenance.watching(form.name), observer.warming(form.name):
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
                observer.settle(made)
            compilation.begin("timed")
            progress.stage("timing", at_most_seconds=None if rule.rounds else rule.budget_seconds)
            with observer.timing(made) as timed:
                timing.time_forms(timed, rule, settings.seed, timings, progress, ranks=ranks)
        finally:
            # Also on Ctrl-C: the calls that were timed are kept.
            for each in run.forms:
                run = with_form(run, each.name, **_timed(each, timings, rule), **observer.seen(each.name))
            run = compilation.added(replace(run, order=tuple(timings.order)))
            store.save(run, draft)
        compilation.begin("later")
        for number, form in enumerate(made):
            progress.stage(f"recording {form.name}", like=[f"recording {each.name}" for each in made[:number]])
            if not number:
                run = replace(
                    run,
                    recording_cost=recording_cost.measure_recording_cost(
                        settings.device, progress, triton=len(made) > 1
                    ),
                )
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
        run = observer.check(made, run, draft, progress, ranks)
    return with_notes(compilation.added(run), *provenance.notes, *observer.notes)


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
    from tracekit.measure import recording

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
