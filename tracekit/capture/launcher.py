"""Starts the ranks of a job by torch's own launcher: `python -m tracekit.capture.launcher JOB ANSWER`. Each rank is
`python -m tracekit.walks.rank_process JOB`; the answer is what became of those that failed."""

import sys
import time
from pathlib import Path

import msgspec
from msgspec.structs import replace
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from tracekit.model.child import ERROR_OF_RANK, STANDS_OF_RANK, LaunchedJob, RankFailure

MODULE = "tracekit.walks.rank_process"
#: How long ranks may take to end when the launcher is told to. Where torch's launcher has no setting for it, it is
#: killed before it gives up on them, and they end with it (`walks/processes.py`, `walks/end_with_parent.py`).
SHUTDOWN_SECONDS = 3


def launch(job_path: Path) -> tuple[RankFailure, ...]:
    """Runs all ranks on this machine until they have ended, all of them as soon as one fails; what failed."""
    job = msgspec.json.decode(job_path.read_bytes(), type=LaunchedJob)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=job.nproc,
        run_id=f"tracekit-{time.time_ns()}",
        # The launcher's store listens on loopback, at a port that is free.
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=0,
    )
    if hasattr(config, "shutdown_timeout"):
        config.shutdown_timeout = SHUTDOWN_SECONDS
    try:
        elastic_launch(config, sys.executable)("-P", "-m", MODULE, str(job_path))
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        return tuple(_failure(job_path.parent, rank, codes.get(rank)) for rank in range(job.nproc))
    return ()


def _failure(place: Path, rank: int, code: int | None) -> RankFailure:
    """What is known of a rank: its own words, its exit code if it had ended by itself, and where it stood."""
    said, stands = place / ERROR_OF_RANK.format(rank), place / STANDS_OF_RANK.format(rank)
    found = msgspec.json.decode(said.read_bytes(), type=RankFailure) if said.is_file() else RankFailure(rank)
    there = stands.read_text(errors="replace") if stands.is_file() else ""
    return replace(found, exit_code=code, stands=there)


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(launch(Path(sys.argv[1]))))
