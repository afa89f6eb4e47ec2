"""The walk of `tracekit profile` from room to room; imported only when something is run."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit import __version__, store
from tracekit.errors import CompileError
from tracekit.model.note import Noted
from tracekit.model.progress import Progress
from tracekit.model.run import FormName, FormResult, Recording, RecordingKind, Run
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo
from tracekit.walks.diagnoses import Diagnoses, with_uncalled
from tracekit.walks.folder_names import folder_name
from tracekit.walks.hushing import hush_libraries
from tracekit.walks.noting import with_notes
from tracekit.walks.provenance import Origins
from tracekit.walks.reports import refuse_report_there
from tracekit.walks.size_choice import choose_request_size
from tracekit.walks.surroundings import Surroundings
from tracekit.walks.timing_plan import TimingPlan, stopping_rule
from tracekit.walks.warming import check_alone, check_differs, warmup_request
from tracekit.workloads.registry import Builder, check_scope, find, load_builder, look_into
from tracekit.workloads.sizes import check_request, way_to_need_less

if TYPE_CHECKING:
    from tracekit.capture import forms, timing, warmup

#: What is recorded of each form, and how many steps of it.
RECORDINGS: tuple[tuple[RecordingKind, int], ...] = (("light", 2), ("rich", 1))
#: Of a scope, so much goes into a folder's name.
SCOPE_CHARACTERS = 60


@dataclass(frozen=True)
class Plan:
    """What one `tracekit profile` is to do."""

    request: Request
    forms: tuple[FormName, ...]
    out: Path | None
    force: bool
    command: str
    provenance: bool = True
    warmup: dict[str, int] | None = None
    timing: TimingPlan = field(default_factory=TimingPlan)
    numerics: bool = True
    verify: bool = False

    @property
    def needs_processes(self) -> bool:
        return self.timing.needs_processes or self.verify


def profile(plan: Plan, progress: Progress, on_part: Callable[[Path], None]) -> Path:
    """Measures and writes the run folder; returns its path.

    After an error or an interrupt `on_part` is told where the part of the run lies that was measured until then; if
    there is none, nothing is left. Raises TracekitError for whatever the user can mend.
    """
    info = find(plan.request.workload)
    scope = check_scope(info, plan.request.scope)
    check_request(info, plan.request)
    if plan.warmup:
        warmup_request(info, plan.request, plan.warmup)
        check_alone(plan.timing, verify=plan.verify)
    folder = place_of_run(plan)
    if len(plan.forms) > 1:
        refuse_report_there(folder, force=plan.force)
    request = replace(plan.request, scope=scope)
    with store.begun(folder, force=plan.force) as draft:
        _finish(draft, on_part, lambda: measure(plan, info, request, draft, progress))
    return folder


def profile_built(plan: Plan, workload: BuiltWorkload, progress: Progress) -> Path:
    """The same for a workload that is in memory already, into `plan.out`, without fresh processes: they could not build
    it."""

    def measured() -> Run:
        from tracekit.capture.visible_kernels import checked_meanwhile

        with _watched(draft) as warned:
            with checked_meanwhile(workload.settings.device):
                progress.phase("asking whether kernels can be seen")
            run = _measure_forms(plan, workload, workload.info.sizes[workload.settings.size], draft, progress)
        return _warned(run, warned)

    assert plan.out is not None
    with store.begun(plan.out, force=plan.force, ways=store.IN_A_PROGRAM) as draft:
        _finish(draft, lambda _part: None, measured)
    return plan.out


def _finish(draft: Path, on_part: Callable[[Path], None], measured: Callable[[], Run]) -> None:
    try:
        run = measured()
    except BaseException as error:
        _keep_what_was_measured(draft, on_part, error)
        raise
    store.finish(run, draft)


def place_of_run(plan: Plan) -> Path:
    """The folder that the run is written into. Raises TracekitError for an unknown workload and a wrong scope."""
    return plan.out or Path("traces") / _run_name(plan, check_scope(find(plan.request.workload), plan.request.scope))


def _run_name(plan: Plan, scope: str) -> str:
    """`flux-eager`, `flux-compiled`, `flux-compiled-reduce-overhead-regional`: the defaults go unnamed."""
    parts: list[str] = [folder_name(plan.request.workload), plan.forms[-1]]
    parts += [each for each in (plan.request.phase, plan.request.cache) if each]
    if "compiled" in plan.forms:
        parts += [plan.request.mode] if plan.request.mode != "default" else []
        parts += [_in_a_name(scope)] if plan.request.scope else []
    return "-".join(parts)


def _in_a_name(scope: str) -> str:
    """`model.layers.*` and `vit.encoder,classifier` as part of a folder's name."""
    return re.sub(r"[^\w.+-]+", "_", scope.replace("*", "each").replace(",", "+"))[:SCOPE_CHARACTERS]


def _keep_what_was_measured(draft: Path, on_part: Callable[[Path], None], error: BaseException) -> None:
    if store.holds_measurements(draft):
        if isinstance(error, Exception):
            store.mark_failed(draft, error)
        on_part(draft)
    else:
        store.clear(draft, but_log=isinstance(error, CompileError))
    if isinstance(error, CompileError) and (draft / store.OUTPUT).is_file():
        error.below = (*error.below, f"  torch's whole text: {draft / store.OUTPUT}")


def measure(plan: Plan, info: WorkloadInfo, request: Request, draft: Path, progress: Progress) -> Run:
    """Builds, warms up, times and records; the manifest in `draft` is rewritten after every part."""
    from tracekit.capture.inductor import check_cache

    check_cache()
    hush_libraries()
    progress.phase("loading torch and the model's libraries")
    builder = load_builder(info)
    with _watched(draft) as warned:
        workload, reason = _build(builder, info, request, progress, compiled="compiled" in plan.forms)
        run = _measure_forms(plan, workload, reason, draft, progress)
        if plan.needs_processes:
            del workload
            run = _run_processes(plan, request, run, draft, progress)
    return _warned(run, warned)


@contextmanager
def _watched(draft: Path) -> Iterator[list[str]]:
    """Output and warnings stay off the terminal; the warnings, as they come."""
    from tracekit.capture.process import output_kept, warnings_collected

    warned: list[str] = []
    with output_kept(draft / store.OUTPUT), warnings_collected(warned):
        yield warned


def _warned(run: Run, warned: list[str]) -> Run:
    return with_notes(run, *(Noted("warned", {"line": line}) for line in warned))


def _measure_forms(plan: Plan, workload: BuiltWorkload, reason: str, draft: Path, progress: Progress) -> Run:
    from tracekit.capture.process import call_in_one_chunk

    run = _first_manifest(plan, workload, reason)
    store.save(run, draft)
    return call_in_one_chunk(lambda: _run_forms(plan, workload, run, draft, progress))


def _build(
    builder: Builder, info: WorkloadInfo, request: Request, progress: Progress, *, compiled: bool
) -> tuple[BuiltWorkload, str]:
    from tracekit.capture import device as devices
    from tracekit.capture import failures
    from tracekit.capture.inductor import check_compilers
    from tracekit.capture.visible_kernels import checked_meanwhile
    from tracekit.workloads.scopes import build_scoped

    device = devices.pick_device()
    if "download" in info.takes:
        progress.phase(f"reading what {info.name} needs")
    info = look_into(info, request)
    size, reason = choose_request_size(info, request, device, devices.free_memory_bytes(device))
    if compiled:
        check_compilers(device)
    progress.phase(f"building {info.name} ({size})")
    with checked_meanwhile(device), failures.out_of_memory_explained(size, way_to_need_less(info, size)):
        workload = build_scoped(builder, info, request, size, device, progress)
        if workload.trial:
            progress.detail("one call, to see that it works")
            workload.trial()
        return workload, reason


def _first_manifest(plan: Plan, workload: BuiltWorkload, reason: str) -> Run:
    from tracekit.capture.device import read_environment
    from tracekit.capture.inductor import idle_mode
    from tracekit.workloads.scopes import repeated_parts

    idle = idle_mode(workload.settings) if "compiled" in plan.forms else None
    run = Run(
        schema="tracekit.run/1",
        status="incomplete",
        tracekit=__version__,
        command=plan.command,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        settings=workload.settings,
        size_reason=reason,
        environment=read_environment(workload.settings.device),
        components=workload.components,
        forms=(),
        order=(),
        notes=workload.notes,
        repeated_parts=repeated_parts(workload),
    )
    return with_notes(run, idle) if idle else run


def _run_forms(plan: Plan, workload: BuiltWorkload, run: Run, draft: Path, progress: Progress) -> Run:
    from tracekit.capture import failures, forms, timing, warmup
    from tracekit.workloads.own_errors import their_calls

    makers = {"eager": forms.eager_form, "compiled": forms.compiled_form}
    diagnoses = Diagnoses(workload, _warmup(plan, workload), plan.warmup)
    made = tuple(diagnoses.watched(makers[name](workload)) for name in plan.forms)
    timings, rule = timing.Timings(), stopping_rule(plan.timing, plan.request, workload.settings)
    origins = Origins(workload, plan.provenance)
    around = Surroundings(workload, plan.numerics)
    settings = workload.settings
    mend = way_to_need_less(workload.info, settings.size, settings)
    with their_calls(settings, failures.is_out_of_memory), failures.out_of_memory_explained(settings.size, mend):
        try:
            for form in made:
                with origins.watching(form.name), around.warming(form.name):
                    warm = warmup.warm_up(diagnoses.warming(form), progress)
                run = diagnoses.added(replace(run, forms=(*run.forms, _unmeasured(form.name, warm))))
                run = with_uncalled(run, workload, form)
                store.save(run, draft)
            if not plan.warmup:
                around.settle(made)
            diagnoses.begin("timed")
            with around.timing(made) as timed:
                timing.time_forms(timed, rule, workload.settings.seed, timings, progress)
        finally:
            # Also on Ctrl-C: the calls that were timed are kept.
            diagnoses.timed(timings)
            run = diagnoses.added(around.told(_with_timings(run, timings, rule)))
            store.save(run, draft)
        diagnoses.begin("later")
        for form in made:
            for kind, steps in RECORDINGS:
                run = _with_recording(run, form.name, _record(form, kind, steps, run, draft, progress))
                store.save(run, draft)
        for form in made:
            run = _with_provenance(run, form.name, origins.ask(form, draft, progress))
            store.save(run, draft)
        run = around.check(made, run, draft, progress)
    return with_notes(diagnoses.added(run), *origins.notes, *around.notes)


def _warmup(plan: Plan, workload: BuiltWorkload) -> Request | None:
    """The request that warm-up calls are made for, where it is another one."""
    if not plan.warmup:
        return None
    # The workload's own sizes, for those that were not asked for, are known only now.
    check_differs(plan.warmup, workload.settings)
    return warmup_request(workload.info, plan.request, plan.warmup)


def _run_processes(plan: Plan, request: Request, run: Run, draft: Path, progress: Progress) -> Run:
    """The run with what fresh processes found; they need the device's memory more than this one does by now."""
    from tracekit.capture import device
    from tracekit.walks.processes import measure_in_processes

    device.release_memory(run.settings.device)
    for larger in measure_in_processes(plan.timing, request, run, draft, progress):
        run = larger
        store.save(run, draft)
    if plan.verify:
        from tracekit.walks.verifying import verify_advice

        run = verify_advice(plan.timing, request, run, draft, progress)
    return run


def _unmeasured(name: FormName, warm: warmup.WarmUp) -> FormResult:
    return FormResult(
        name=name,
        warmup_us=warm.wall_us,
        wall_us=(),
        device_us=None,
        peak_memory_bytes=None,
        compilation=warm.compilation,
        recordings=(),
    )


def _with_timings(run: Run, timings: timing.Timings, rule: StoppingRule) -> Run:
    def timed(form: FormResult) -> FormResult:
        device_us = timings.device_us.get(form.name)
        compilation = form.compilation
        if compilation:
            compilation = replace(compilation, during_timing=timings.compilations.get(form.name, 0))
        return replace(
            form,
            wall_us=tuple(timings.wall_us.get(form.name, ())),
            device_us=tuple(device_us) if device_us is not None else None,
            peak_memory_bytes=timings.peak_bytes.get(form.name),
            compilation=compilation,
            timing=timings.of(form.name, rule) if form.name in timings.wall_us else None,
        )

    return replace(run, forms=tuple(timed(form) for form in run.forms), order=tuple(timings.order))


def _with_recording(run: Run, name: FormName, recording: Recording) -> Run:
    def recorded(form: FormResult) -> FormResult:
        return replace(form, recordings=(*form.recordings, recording)) if form.name == name else form

    return replace(run, forms=tuple(recorded(form) for form in run.forms))


def _with_provenance(run: Run, name: FormName, path: str | None) -> Run:
    asked = (replace(form, provenance=path) if form.name == name else form for form in run.forms)
    return replace(run, forms=tuple(asked))


def _record(form: forms.Form, kind: RecordingKind, steps: int, run: Run, draft: Path, progress: Progress) -> Recording:
    from tracekit.capture import recording
    from tracekit.tracefile.publish import publish

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
        raw = recording.record(form, kind, steps, unpublished, progress)
        size = publish(raw.path, draft / name, metadata=about, marks=raw.marks)
    finally:
        # Also on Ctrl-C: half a trace under a hidden name is of no use to anybody.
        unpublished.unlink(missing_ok=True)
    return Recording(kind=kind, path=name, steps=steps, bytes=size)
