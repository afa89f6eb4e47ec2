"""One rank of a run: `python -m tracekit.walks.rank_process JOB`, started by torch's launcher."""

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
from msgspec.structs import replace

from tracekit import store
from tracekit.errors import LateRankError, TheirCodeError, TracekitError
from tracekit.model.child import ERROR_OF_RANK, STANDS_OF_RANK, RankFailure
from tracekit.model.progress import Progress, Silent
from tracekit.walks.cell_process import in_one_line, measure_cell, ran_out_of_memory
from tracekit.walks.end_with_parent import end_with
from tracekit.walks.job import RANK, RankJob, decoded
from tracekit.walks.processes import WORD, caches_in
from tracekit.walks.profiling import measure_rank
from tracekit.walks.relayed_progress import Relaying

#: What gloo and NCCL say of a rank that did not come.
TIMED_OUT = re.compile("timed? ?-?out", re.IGNORECASE)


def work(job: RankJob, place: Path, rank: int) -> None:
    """Measures this rank's part of the run into its folder, or of the cell; of that rank 0 leaves what was found."""
    if job.cell is not None:
        for name in caches_in(place):
            # Empty for each rank: another's compiled code would shorten what it takes to compile.
            os.environ[name] += f"/rank{rank}"
    # Imports torch, which looks at them.
    from tracekit.capture.lockstep import joined

    if job.cell is not None:
        with joined(job.timeout_seconds) as ranks:
            measure_cell(job.cell, place, ranks)
        return
    assert job.plan is not None and job.draft is not None
    progress: Progress = Relaying(place / WORD) if rank == 0 else Silent()
    with joined(job.plan.timeout_seconds) as ranks:
        run, folder = measure_rank(job.plan, job.draft, progress, ranks)
        store.save(replace(run, status="complete") if rank else run, folder)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(job_path: Path) -> None:
    """Does this rank's part; what it raises is left beside the job, and the process ends with code 1."""
    end_with(os.getppid())
    place, rank = job_path.parent, int(os.environ[RANK])
    # Ended from outside it says where it stood, and keeps what it has timed, as on Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupted)
    stands = (place / STANDS_OF_RANK.format(rank)).open("w")
    faulthandler.register(signal.SIGTERM, file=stands, all_threads=False, chain=True)
    try:
        work(decoded(job_path.read_bytes()), place, rank)
    except KeyboardInterrupt:
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - whatever it is, the process that asked shows it.
        text = error.traceback if isinstance(error, TheirCodeError) else ""
        if not isinstance(error, TracekitError):
            text = traceback.format_exc().rstrip("\n")
        below = error.below if isinstance(error, TracekitError) else ()
        late = isinstance(error, LateRankError) or TIMED_OUT.search(str(error)) is not None
        full = ran_out_of_memory(error)
        failure = RankFailure(rank, in_one_line(error), text, below, time.time(), out_of_memory=full, timed_out=late)
        (place / ERROR_OF_RANK.format(rank)).write_bytes(msgspec.json.encode(failure))
        # Not by Python's own end, which may wait for threads that wait for other ranks.
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
