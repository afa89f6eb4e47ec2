"""One rank of a job: what it measures of a run together with the others, and what the run says of all of them."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.job.differences import Differences, find_rank_differences
from tracekit.measure.plan import Plan, place_of_run, refuse_processes_of_ranks
from tracekit.measure.profiling import built_and_measured, part_kept
from tracekit.model.progress import Progress
from tracekit.model.run import FormName, FormResult, RankForm, RankOfRun, Run
from tracekit.model.workload import Request
from tracekit.reading.reports import refuse_report_there
from tracekit.workloads.registry import find
from tracekit.workloads.sizes import check_request

if TYPE_CHECKING:
    from tracekit.measure.ranks import Ranks


def profile_with_others(plan: Plan, asked: Request, progress: Progress, on_part: Callable[[Path], None]) -> Path:
    """As `profile` does it, in one rank of a job that torchrun, or another launcher, has started: all ranks run this
    command, and the first writes the run folder. It must be where all of them see it."""
    # Imports torch.
    from tracekit.job.lockstep import joined

    with ExitStack() as stack:
        ranks = stack.enter_context(joined(plan.timeout_seconds))
        asked = replace(asked, nproc=ranks.size)
        plan = replace(plan, request=replace(plan.request, nproc=ranks.size))
        check_request(find(plan.request.workload), plan.request)
        refuse_processes_of_ranks(plan)
        folder = place_of_run(plan)
        if ranks.rank == 0:
            if len(plan.forms) > 1:
                refuse_report_there(folder, force=plan.force)
            made = stack.enter_context(store.begun(folder, force=plan.force)).resolve()
            stack.enter_context(part_kept(made, on_part))
        plan = replace(plan, request=asked)
        draft = ranks.decided(made if ranks.rank == 0 else None)
        assert draft is not None
        refuse_unshared(draft, ranks)
        run, own = measure_rank(plan, draft, progress, ranks)
        store.save(replace(run, status="complete") if ranks.rank else run, own)
        # All have written what belongs to the folder.
        ranks.begin()
        if ranks.rank == 0:
            store.finish(run, draft)
        ranks.begin()
    return folder


def measure_rank(plan: Plan, draft: Path, progress: Progress, ranks: Ranks) -> tuple[Run, Path]:
    """One rank's part of the run, and its folder: `draft` itself for rank 0, else one in it. Of rank 0 the run names
    all ranks. Raises TracekitError for whatever the user can mend."""
    own = draft / f"rank{ranks.rank}" if ranks.rank else draft
    own.mkdir(exist_ok=True)
    run = built_and_measured(plan, find(plan.request.workload), plan.request, own, progress, ranks)
    return replace(run, ranks=_ranks_of_run(run, own.name, ranks)), own


def _ranks_of_run(run: Run, folder: str, ranks: Ranks) -> tuple[RankOfRun, ...]:
    """Every rank with its forms; of any rank but the first none."""
    found = ranks.gathered((platform.node(), run.environment.gpu, folder, run.forms))
    if ranks.rank:
        return ()
    by_name = [{form.name: form for form in forms} for *_, forms in found]
    slowest: dict[FormName, Counter[int]] = {}
    differ: dict[FormName, Differences] = {}
    for name in by_name[0]:
        own_us = (forms[name].own_wall_us for forms in by_name)
        slowest[name] = Counter(each.index(max(each)) for each in zip(*own_us, strict=True))
        differ[name] = find_rank_differences(by_name, name)

    def of_form(rank: int, form: FormResult) -> RankForm:
        facts = form.compilation
        told = facts.diagnostics if facts else None
        return RankForm(
            name=form.name,
            wall_us=median(form.own_wall_us) if form.own_wall_us else 0.0,
            times_slowest=slowest[form.name][rank],
            graphs=facts.graphs if facts else None,
            graph_breaks=facts.graph_breaks if facts else None,
            peak_memory_bytes=form.own_peak_memory_bytes,
            compiling_calls=tuple(each.call for each in told.timed_calls()) if told else (),
            differs=tuple(differ[form.name][rank]),
        )

    return tuple(
        RankOfRun(rank, host, gpu, folder if rank else None, tuple(of_form(rank, form) for form in forms))
        for rank, (host, gpu, folder, forms) in enumerate(found)
    )


def refuse_unshared(folder: Path, ranks: Ranks) -> None:
    """Raises TracekitError, in all ranks alike, where a rank does not see the folder: hosts share no file system."""
    seen = ranks.gathered((platform.node(), folder.is_dir()))
    blind = [f"{rank} ({host})" for rank, (host, sees) in enumerate(seen) if not sees]
    if blind:
        raise TracekitError(
            f"rank {', '.join(blind)} does not see {folder}: pass --out with a folder that all hosts share"
        )
