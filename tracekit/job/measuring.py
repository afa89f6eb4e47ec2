"""One rank of a job: what it measures of a run together with the others, and what the run says of all of them: with
the same work they compile alike and hold as much, and what only some did is told."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from tracekit import store
from tracekit.comparison.judging.accuracy import judge_outputs
from tracekit.comparison.judging.rank_differences import severity_of
from tracekit.errors import TracekitError
from tracekit.measure.plan import Plan, place_of_run, refuse_processes_of_ranks
from tracekit.measure.profiling import built_and_measured, part_kept
from tracekit.model.compilation import Diagnostics, FailedGuard, FrameCompilation
from tracekit.model.progress import Progress
from tracekit.model.run import FormName, FormResult, RankForm, RankOfRun, Run
from tracekit.model.workload import Request
from tracekit.reading.reports import refuse_report_there
from tracekit.statements.guards import OtherCheck, check_of
from tracekit.statements.rank_differences import (
    RankBroke,
    RankDifference,
    RankMemory,
    RankOutputs,
    RankRanEager,
    RankRecompiled,
)
from tracekit.workloads.registry import find
from tracekit.workloads.sizes import check_request

if TYPE_CHECKING:
    from tracekit.measure.ranks import Ranks

Key = TypeVar("Key")
T = TypeVar("T")

#: Peaks of memory that are less apart than this share of the least, or than so many bytes, are alike.
LEAST_MEMORY, LEAST_BYTES = 0.03, 2**20
#: Of each rank, what it did that not all did.
Differences = tuple[list[RankDifference], ...]


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
                refuse_report_there(folder, plan.page, force=plan.force)
            made = stack.enter_context(store.begun(folder, force=plan.force)).resolve()
            stack.enter_context(part_kept(made, on_part))
        plan = replace(plan, request=asked)
        draft = ranks.decided(made if ranks.rank == 0 else None)
        assert draft is not None
        refuse_unshared(draft, ranks)
        run = measure_rank(plan, draft, progress, ranks)
        # All have written what belongs to the folder.
        ranks.begin()
        if ranks.rank == 0:
            store.finish(run, draft)
        ranks.begin()
    return folder


def measure_rank(plan: Plan, draft: Path, progress: Progress, ranks: Ranks) -> Run:
    """Measures one rank's part of the run, and saves it: in `draft` itself of rank 0, else in a folder of it. Of rank 0
    the run names all ranks. Raises TracekitError for whatever the user can mend."""
    own = draft / f"rank{ranks.rank}" if ranks.rank else draft
    own.mkdir(exist_ok=True)
    run = built_and_measured(plan, find(plan.request.workload), plan.request, own, progress, ranks)
    run = replace(run, ranks=_ranks_of_run(run, own.name, ranks), status="complete" if ranks.rank else run.status)
    store.save(run, own)
    return run


def _ranks_of_run(run: Run, folder: str, ranks: Ranks) -> tuple[RankOfRun, ...]:
    """Every rank with its forms; of any rank but the first none."""
    found = ranks.gathered((platform.node(), run.environment.gpu, folder, run.forms))
    if ranks.rank:
        return ()
    by_name = [{form.name: form for form in forms} for *_, forms in found]
    told: list[list[RankForm]] = [[] for _ in found]
    for name in by_name[0]:
        forms = [of_rank[name] for of_rank in by_name]
        slowest = Counter(find_slowest([form.own_wall_us for form in forms]))
        for rank, (form, differs) in enumerate(zip(forms, find_rank_differences(by_name, name), strict=True)):
            facts = form.compilation
            calls = facts.diagnostics.timed_calls() if facts and facts.diagnostics else ()
            of_form = RankForm(
                name=name,
                wall_us=median(form.own_wall_us) if form.own_wall_us else 0.0,
                times_slowest=slowest[rank],
                graphs=facts.graphs if facts else None,
                graph_breaks=facts.graph_breaks if facts else None,
                peak_memory_bytes=form.own_peak_memory_bytes,
                compiling_calls=tuple(each.call for each in calls),
                differs=tuple(differs),
            )
            told[rank].append(of_form)
    return tuple(
        RankOfRun(rank, host, gpu, folder if rank else None, tuple(told[rank]))
        for rank, (host, gpu, folder, _) in enumerate(found)
    )


def find_slowest(own_us: Sequence[Sequence[float]]) -> Iterator[int]:
    """The rank that took longest, of each call, from every rank's own times; ranks that took the same by turns."""
    for number, times_us in enumerate(zip(*own_us, strict=True)):
        longest = [rank for rank, us in enumerate(times_us) if us == max(times_us)]
        yield longest[number % len(longest)]


def refuse_unshared(folder: Path, ranks: Ranks) -> None:
    """Raises TracekitError, in all ranks alike, where a rank does not see the folder: hosts share no file system."""
    seen = ranks.gathered((platform.node(), folder.is_dir()))
    blind = [f"{rank} ({host})" for rank, (host, sees) in enumerate(seen) if not sees]
    if blind:
        raise TracekitError(
            f"rank {', '.join(blind)} does not see {folder}: pass --out with a folder that all hosts share"
        )


def find_rank_differences(ranks: Sequence[Mapping[FormName, FormResult]], name: FormName) -> Differences:
    """What each rank's form of that name did that not all ranks' did; `ranks` have the forms of one rank each."""
    forms = [forms[name] for forms in ranks]
    noted: list[tuple[int, RankDifference]] = []
    told = [form.compilation.diagnostics if form.compilation else None for form in forms]
    if all(told):
        diagnostics = [each for each in told if each]
        noted += _recompiled(diagnostics)
        breaks = [{(each.line, each.function): each for each in told.breaks} for told in diagnostics]
        noted += [(rank, RankBroke(each.line, each.function, each.reason)) for rank, each in _of_some(breaks)]
        eager = [{(each.kind, each.function, each.where): each for each in told.fallbacks} for told in diagnostics]
        noted += [(rank, RankRanEager(each.where, each.function, each.reason)) for rank, each in _of_some(eager)]
    noted += _held_more(forms)
    noted += _returned_worse(ranks) if name == "compiled" else ()
    return tuple([difference for of_rank, difference in noted if of_rank == rank] for rank in range(len(ranks)))


def _recompiled(diagnostics: Sequence[Diagnostics]) -> Iterator[tuple[int, RankDifference]]:
    """Functions that a rank compiled again more often than the rank that did so least."""
    ranks: list[dict[tuple[str | None, str | None], list[FrameCompilation]]] = []
    for told in diagnostics:
        ranks.append({})
        for each in told.recompiles:
            ranks[-1].setdefault((each.function, each.where), []).append(each)
    for key in dict.fromkeys(key for own in ranks for key in own):
        every = [own.get(key, []) for own in ranks]
        fewest = min(every, key=len)
        # Checks at which the rank with fewest failed too are not what another is alone with.
        usual = {guard.check for guard in _guards(fewest)}
        for rank, again in enumerate(every):
            if len(again) > len(fewest):
                guards = _guards(again)
                own = [each for each in guards if each.check not in usual] or guards
                # A size, a type or a function says more than what torch alone has words for.
                known = [each for each in own if not isinstance(check_of(each), OtherCheck)] or own
                timed = sum(each.phase == "timed" for each in again)
                yield rank, RankRecompiled(*key, len(again), len(fewest), timed, known[0].check)


def _guards(recompiles: Sequence[FrameCompilation]) -> list[FailedGuard]:
    """The checks that failed before, the latest first."""
    return [guard for each in reversed(recompiles) for guard in each.because]


def _of_some(ranks: Sequence[Mapping[Key, T]]) -> Iterator[tuple[int, T]]:
    """What some ranks have and others have not."""
    for rank, own in enumerate(ranks):
        for key, each in own.items():
            if not all(key in others for others in ranks):
                yield rank, each


def _held_more(forms: Sequence[FormResult]) -> Iterator[tuple[int, RankDifference]]:
    """Ranks whose calls hold more memory than those of the rank that holds least."""
    peaks = [form.own_peak_memory_bytes for form in forms]
    least = min((peak for peak in peaks if peak is not None), default=0)
    for rank, peak in enumerate(peaks):
        if peak is not None and peak - least >= max(LEAST_MEMORY * least, LEAST_BYTES):
            yield rank, RankMemory(peak, least)


def _returned_worse(ranks: Sequence[Mapping[FormName, FormResult]]) -> Iterator[tuple[int, RankDifference]]:
    """Ranks whose compiled form returns what is less like eager's than on the rank that is most like it."""
    judged = []
    for forms in ranks:
        eager, compiled = (form.numerics if form else None for form in (forms.get("eager"), forms.get("compiled")))
        judged.append(judge_outputs(eager, compiled, same_work=True) if compiled else None)
    best = max((severity_of(each) for each in judged if each), default=0)
    for rank, each in enumerate(judged):
        if each is not None and each.result in ("less_accurate", "undecided") and severity_of(each) < best:
            yield rank, RankOutputs(each.result, each.basis, each.reason)
