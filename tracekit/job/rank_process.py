"""One rank of a run: `python -m tracekit.job.rank_process JOB`, started by `job/launcher.py`."""

import faulthandler
import os
import re
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType

import msgspec

from tracekit.errors import LateRankError, TheirCodeError, TracekitError
from tracekit.files import write_replaced
from tracekit.job.measuring import measure_rank
from tracekit.job.nouns import END_OF_RANK, STANDS_OF_RANK, RankFailure, RankJob, decoded
from tracekit.job.relayed_progress import Relaying
from tracekit.measure.plan import RANK
from tracekit.measure.processes import WORD, caches_in
from tracekit.measure.timed_cell import ProgressFile, in_one_line, keeping, measure_cell, ran_out_of_memory
from tracekit.model.progress import Progress, Silent

#: What gloo and NCCL say of a rank that did not come.
TIMED_OUT = re.compile("timed? ?-?out", re.IGNORECASE)
#: And of one that has gone.
LOST = re.compile("connection (closed|reset|refused)|broken pipe|remote (process|error)|end of file", re.IGNORECASE)


class ToldToEndError(KeyboardInterrupt):
    """What a rank has timed is kept, as on Ctrl-C."""


def work(job: RankJob, place: Path, rank: int) -> None:
    """Measures this rank's part of the run into its folder, or of the cell; of that rank 0 leaves what was found."""
    if job.cell is not None:
        for name in caches_in(place):
            # Empty for each rank: another's compiled code would shorten what it takes to compile.
            os.environ[name] += f"/rank{rank}"
    # Imports torch, which looks at them.
    from tracekit.job.lockstep import joined

    with joined(job.timeout_seconds) as ranks:
        if job.cell is not None:
            word = Path(os.devnull) if rank else place / WORD
            measure_cell(job.cell, ProgressFile(word), (lambda _: None) if rank else keeping(place), ranks=ranks)
            return
        assert job.plan is not None and job.draft is not None
        progress: Progress = Silent() if rank else Relaying(place / WORD)
        measure_rank(job.plan, job.draft, progress, ranks)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise ToldToEndError


def main(job_path: Path) -> None:
    """Does this rank's part, leaves beside the job how that ended, and ends the process."""
    place, rank = job_path.parent, int(os.environ[RANK])
    # Told to end it says where it stood.
    signal.signal(signal.SIGTERM, _interrupted)
    stands = (place / STANDS_OF_RANK.format(rank)).open("w")
    faulthandler.register(signal.SIGTERM, file=stands, all_threads=False, chain=True)
    failure: RankFailure | None = None
    try:
        work(decoded(job_path.read_bytes()), place, rank)
    except ToldToEndError:
        # The launcher knows whether it was its own word.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the process that asked shows it.
        # When one rank fails, others often do so too: being told to end does not cut short what this one says.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        failure = failure_of_rank(rank, error)
    # Whole or not at all: the launcher may read it when the rank was killed.
    write_replaced(place / END_OF_RANK.format(rank), msgspec.json.encode(failure))
    sys.stdout.flush()
    # Not by Python's own end, which may wait for threads that wait for other ranks.
    os._exit(1 if failure else 0)


def failure_of_rank(rank: int, error: BaseException) -> RankFailure:
    """What the rank says of its error; whether that is another rank's doing is told by its words."""
    text = error.traceback if isinstance(error, TheirCodeError) else ""
    if not isinstance(error, TracekitError):
        text = "".join(traceback.format_exception(error)).rstrip("\n")
    return RankFailure(
        rank,
        in_one_line(error),
        text,
        error.below if isinstance(error, TracekitError) else (),
        time.time(),
        out_of_memory=ran_out_of_memory(error),
        timed_out=isinstance(error, LateRankError) or TIMED_OUT.search(str(error)) is not None,
        waited_for=error.ranks if isinstance(error, LateRankError) else (),
        lost_another=LOST.search(str(error)) is not None,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
