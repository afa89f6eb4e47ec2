"""Starts the ranks of a job on this machine: `python -m tracekit.job.launcher JOB ANSWER`. Each rank is
`python -m tracekit.job.rank_process JOB`; the answer is how those ended that failed.

Not by torch's elastic agent: it counts ranks that it ended itself among those that failed, it cannot say which rank was
first, and it gives the others 30 s to end.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import msgspec
from msgspec.structs import replace

from tracekit.job.lockstep import meeting_place
from tracekit.job.nouns import END_OF_RANK, STANDS_OF_RANK, RankFailure, decoded
from tracekit.measure.processes import end_groups, tied_command

MODULE = "tracekit.job.rank_process"
#: How long ranks may take to end when they are told to: shorter than the launcher has itself (`measure/processes.py`).
PATIENCE_SECONDS = 3.0
#: A rank that has ended, its exit code and when that was.
End = tuple[int, int, float]


def launch(job_path: Path) -> tuple[RankFailure, ...]:
    """Runs all ranks until they have ended, and stops all of them as soon as one has failed; those that did not do all
    that they were to do."""
    size = decoded(job_path.read_bytes()).nproc
    began, ends = time.time(), SimpleQueue[End]()
    ranks: list[subprocess.Popen[bytes]] = []
    ended: dict[int, RankFailure | None] = {}

    def tell_end(rank: int, process: subprocess.Popen[bytes]) -> None:
        ends.put((rank, process.wait(), time.time()))

    with meeting_place() as address:
        try:
            for rank in range(size):
                process = subprocess.Popen(
                    tied_command(MODULE, (str(job_path),)),
                    env=os.environ | address | _place_in_job(rank, size),
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
                ranks.append(process)
                Thread(target=tell_end, args=(rank, process), daemon=True).start()
            while len(ended) < size and not any(ended.values()):
                rank, code, at = ends.get()
                ended[rank] = _failure(job_path.parent, rank, code, at, began)
        finally:
            killed = end_groups(*ranks, patience_seconds=PATIENCE_SECONDS)
    for rank, process in enumerate(ranks):
        if rank not in ended:
            # It did not fail by a signal that was sent from here, but meanwhile by anything else.
            ours = (-signal.SIGTERM, -signal.SIGKILL) if process in killed else (-signal.SIGTERM,)
            end = None if process.returncode in ours else process.returncode
            ended[rank] = _failure(job_path.parent, rank, end, time.time(), began)
    return tuple(failure for _, failure in sorted(ended.items()) if failure)


def _place_in_job(rank: int, size: int) -> dict[str, str]:
    """What torchrun sets for the ranks of one machine."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "GROUP_RANK": 0}
    # Failed collectives end the process.
    settings = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
    if sys.platform == "linux":
        # Else gloo listens at the address that the host's name has, where other machines may reach it.
        settings["GLOO_SOCKET_IFNAME"] = "lo"
    chosen = {name: os.environ.get(name, value) for name, value in settings.items()}
    return {name: str(number) for name, number in numbers.items()} | chosen


def _failure(place: Path, rank: int, code: int | None, at: float, began: float) -> RankFailure | None:
    """None for a rank that did all that it was to do, else what it says itself, its exit code if it was not stopped
    from here, and where it stood."""
    end, stands = place / END_OF_RANK.format(rank), place / STANDS_OF_RANK.format(rank)
    said = msgspec.json.decode(end.read_bytes(), type=RankFailure | None) if end.is_file() else RankFailure(rank, at=at)
    if said is None and code in (0, None):
        return None
    there = stands.read_text(errors="replace") if stands.is_file() else ""
    return replace(said or RankFailure(rank, at=at), exit_code=code, stands=there, seconds=at - began)


def main(job_path: Path, answer_path: Path) -> None:
    """Told to end it stops its ranks, and gives no answer."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    answer_path.write_bytes(msgspec.json.encode(launch(job_path)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
