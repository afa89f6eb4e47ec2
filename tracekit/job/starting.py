"""A run over several ranks: what starts them, and what becomes of one that fails."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from signal import Signals

import msgspec

from tracekit import store
from tracekit.errors import KilledRankError, TheirCodeError, TracekitError
from tracekit.job.nouns import RankFailure, RankJob, encoded
from tracekit.job.relayed_progress import shown_on
from tracekit.measure.plan import Plan
from tracekit.measure.processes import Ended, caches_in, run_module
from tracekit.model.cell import CellJob
from tracekit.model.progress import Progress
from tracekit.model.run import Run
from tracekit.report.words.progress import exit_words

MODULE = "tracekit.job.launcher"
#: So many of the lines in which a rank says where it stands.
STANDS_LINES = 6


def measure_job(plan: Plan, draft: Path, progress: Progress) -> Run:
    """Starts the ranks, waits until they have measured and recorded, and returns the run of rank 0, in `draft` with
    the other ranks' folders. Raises TracekitError with what the first rank to fail says."""
    assert plan.request.nproc is not None
    job = encoded(RankJob(plan.request.nproc, plan.timeout_seconds, plan, draft.resolve()))
    progress.phase(f"starting {plan.request.nproc} ranks")
    ended = run_module(MODULE, job, draft, threads_of_rank(), on_word=shown_on(progress))
    if ended.lines:
        with (draft / store.OUTPUT).open("a", encoding="utf-8") as log:
            log.writelines(f"{line}\n" for line in ended.lines)
    if ended.answer is None:
        raise TracekitError(f"the launcher of the ranks failed: {ended.how()}")
    failures = msgspec.json.decode(ended.answer, type=tuple[RankFailure, ...])
    if failures:
        raise failure_of(failures, plan.request.nproc, plan.timeout_seconds)
    return store.load(draft)


def threads_of_rank() -> dict[str, str]:
    """What torchrun sets too, with a warning: the ranks share the machine's cores."""
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}


def failure_of(failures: tuple[RankFailure, ...], size: int, timeout_seconds: float) -> TracekitError:
    """The error of the job: that of the rank that failed first by itself. Others fail because that one is gone or does
    not come, or are stopped."""
    own = sorted((each for each in failures if each.exit_code is not None), key=lambda each: each.at)
    # NCCL aborts a process that has lost another, or has waited in vain.
    aborted = [each for each in own if each.exit_code == -Signals.SIGABRT]
    waiting = [each for each in own if (each.timed_out or each in aborted) and each.seconds >= timeout_seconds]
    causes = [each for each in own if not (each.timed_out or each.lost_another or each in aborted)]
    awaited = {rank for each in waiting for rank in each.waited_for}
    stopped = [each for each in failures if each.exit_code is None]
    hanging = [each for each in stopped if each.rank in awaited] or stopped
    if not causes and waiting and hanging:
        return _hanging_error(hanging, size, timeout_seconds, waiting[0] if waiting == aborted else None)
    first = (causes or aborted or own)[0]
    of = f"rank {first.rank} of {size}"
    if first.message is None:
        assert first.exit_code is not None
        kind = KilledRankError if first.exit_code < 0 else TracekitError
        then = f"; tracekit stopped rank {', '.join(str(each.rank) for each in stopped)}" if stopped else ""
        return kind(f"{of} ended before it had measured: {exit_words(first.exit_code)}{then}")
    message = f"{of}: {first.message}"
    error = TheirCodeError(message, first.traceback) if first.traceback else TracekitError(message)
    error.below = first.below
    return error


def _hanging_error(
    hanging: list[RankFailure], size: int, timeout_seconds: float, aborted: RankFailure | None
) -> TheirCodeError:
    """Which ranks did not come, as far as that is known, and where each stood. Of one that waited and was `aborted` it
    is not known by whom."""
    lines: list[str] = []
    for each in hanging:
        if not each.stands:
            lines.append(f"Rank {each.rank} did not say where it stands.")
            continue
        # `faulthandler` writes the main thread last, its innermost frame first.
        thread = each.stands.strip().rpartition("\n\n")[2].splitlines()
        frames = (f"  {line}" for line in thread[1 : STANDS_LINES + 1])
        lines += [f"Rank {each.rank} stands at (innermost first):", *frames]
    which = " or ".join(str(each.rank) for each in hanging)
    message = f"rank {which} of {size} hangs: the others waited {timeout_seconds:.0f} s for it (--timeout)"
    if aborted is not None:
        message = (
            f"rank {aborted.rank} of {size} ended by SIGABRT: by NCCL, if it waited {timeout_seconds:.0f} s (--timeout)"
            f" for rank {which}, or by an error of its own (output.log)"
        )
    return TheirCodeError(message, "\n".join(lines))


def time_cell(
    job: CellJob,
    nproc: int,
    place: Path,
    timeout_seconds: float,
    *,
    limit_seconds: float | None,
    on_word: Callable[[str], None],
) -> tuple[Ended, TracekitError | None, bool]:
    """Times a cell in so many ranks, whose caches are below `place`: how that ended, what rank 0 found out so far with
    it; the error of the rank that failed, if one did; and whether any had too little memory."""
    asked = encoded(RankJob(nproc, timeout_seconds, cell=job))
    surroundings = caches_in(place) | threads_of_rank()
    ended = run_module(MODULE, asked, place, surroundings, limit_seconds=limit_seconds, on_word=on_word)
    failures = msgspec.json.decode(ended.answer, type=tuple[RankFailure, ...]) if ended.answer is not None else ()
    error = failure_of(failures, nproc, timeout_seconds) if failures else None
    return ended, error, any(each.out_of_memory for each in failures)
