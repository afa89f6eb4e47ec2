"""What `tracekit profile` does, step by step; imported only when something is run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from tracekit import store
from tracekit.errors import CompileError
from tracekit.measure import plan as planning
from tracekit.measure.building import check_cache, quiet_libraries
from tracekit.measure.plan import Plan
from tracekit.measure.process import output_kept, warnings_collected
from tracekit.measure.ranks import ALONE, Ranks
from tracekit.measure.run_so_far import with_notes
from tracekit.measure.timing_process import STARTS, measure_in_processes, verify_advice
from tracekit.model.progress import Progress
from tracekit.model.run import Run
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo
from tracekit.reading.reports import refuse_report_there
from tracekit.report.words.progress import ASKING_WHETHER_KERNELS_ARE_SEEN, LOADING
from tracekit.statements.noted import Warned
from tracekit.wings import load
from tracekit.workloads.registry import check_scope, find, load_builder
from tracekit.workloads.sizes import check_request


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
        planning.refuse_warmup_beside_processes(plan)
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
                run = built_and_measured(plan, info, plan.request, draft, progress)
        store.finish(run, draft)
    return folder


def profile_built(plan: Plan, workload: BuiltWorkload, progress: Progress) -> Path:
    """The same for a workload that is in memory already, into `plan.out`, without fresh processes: they could not build
    it."""
    from tracekit.measure.measured_run import measure_forms
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
                run = measure_forms(plan, workload, reason, draft, progress, ALONE)
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
    plan: Plan, info: WorkloadInfo, request: Request, draft: Path, progress: Progress, ranks: Ranks = ALONE
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
    from tracekit.measure.device import release_memory
    from tracekit.measure.measured_run import build, measure_forms

    with output_kept(draft / store.OUTPUT), warnings_collected() as warned:
        workload, reason = build(builder, info, request, progress, ranks, compiled="compiled" in plan.forms)
        run = measure_forms(plan, workload, reason, draft, progress, ranks)
        if plan.timing.startup or plan.timing.repeats or plan.verify:
            # Fresh processes need the device's memory more than this one does by now.
            del workload
            release_memory(run.settings.device)
            for larger in measure_in_processes(plan.timing, request, run, draft, progress):
                run = larger
                store.save(run, draft)
        if plan.verify and run.not_compiled is None:
            run = verify_advice(plan.timing, request, run, draft, progress)
    return with_notes(run, *map(Warned, warned))
