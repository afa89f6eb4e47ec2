"""A run over several ranks: what starts them, and what becomes of one that fails."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from tracekit import store
from tracekit.errors import KilledRankError, TheirCodeError, TracekitError
from tracekit.model.cell import CellJob
from tracekit.model.child import RankFailure
from tracekit.model.progress import Progress
from tracekit.model.run import Run
from tracekit.model.workload import Request
from tracekit.report.words.noted import exit_words
from tracekit.walks.plan import RANKS_SECONDS, Plan
from tracekit.walks.processes import run_module
from tracekit.walks.relayed_progress import shown_on

if TYPE_CHECKING:
    from tracekit.capture.lockstep import Ranks

MODULE = "tracekit.walks.launcher"
#: So many of the lines in which a rank says where it stands.
STANDS_LINES = 6
#: What ranks of a job started elsewhere have in their environment.
RANK = "RANK"
OF_A_JOB = ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class RankJob(Struct, frozen=True):
    """What each rank is to do: to measure a run by its plan into `draft`, or to time a cell."""

    nproc: int
    plan: Plan | None = None
    draft: Path | None = None
    cell: CellJob | None = None
    timeout_seconds: float = RANKS_SECONDS


def encoded(job: RankJob) -> bytes:
    return msgspec.json.encode(job, enc_hook=str)


def decoded(content: bytes) -> RankJob:
    def path(kind: type[Any], text: Any) -> Any:
        return kind(text)

    return msgspec.json.decode(content, type=RankJob, dec_hook=path)


def rank_here() -> int | None:
    """The rank that a launcher has given to this process; None where none has."""
    text = os.environ.get(RANK, "")
    return int(text) if text.isdecimal() and all(name in os.environ for name in OF_A_JOB) else None


def refuse_alone(request: Request) -> None:
    """Raises TracekitError for what is for several ranks where there is one process."""
    if request.parallel and not request.nproc and rank_here() is None:
        raise TracekitError(f"--parallel {request.parallel} is for several ranks: pass --nproc N")


def refuse_unshared(folder: Path, ranks: Ranks) -> None:
    """Raises TracekitError, in all ranks alike, where a rank does not see the folder: hosts share no file system."""
    seen = ranks.gathered((platform.node(), folder.is_dir()))
    blind = [f"{rank} ({host})" for rank, (host, sees) in enumerate(seen) if not sees]
    if blind:
        raise TracekitError(
            f"rank {', '.join(blind)} does not see {folder}: pass --out with a folder that all hosts share"
        )


def measure_job(plan: Plan, draft: Path, progress: Progress) -> Run:
    """Starts the ranks, waits until they have measured and recorded, and returns the run of rank 0, in `draft` with
    the other ranks' folders. Raises TracekitError with what the first rank to fail says."""
    assert plan.request.nproc is not None
    job = encoded(RankJob(plan.request.nproc, plan, draft.resolve()))
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
        others = [str(each.rank) for each in failures if each.exit_code is None]
        then = f"; tracekit stopped rank {', '.join(others)}" if others else ""
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
