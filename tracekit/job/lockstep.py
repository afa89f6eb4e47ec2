"""Many ranks that make the same calls: all begin one at the same moment, and it is over when the slowest rank's is.

Each rank is a process that a launcher has started (`torchrun`, or `tracekit profile --nproc`). Whatever steers the walk
is agreed on between calls over a group of gloo's: which moment a call begins at, how long it took, whether to go on.
What ranks send each other inside calls is the workload's own affair.
"""

import os
import platform
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from tracekit.errors import LateRankError, TracekitError

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
#: A call begins so long after all ranks have come to it: longer than the word of it travels between processes.
AHEAD_NS = 500_000


class Lockstep:
    """The ranks of a job whose process group is up."""

    def __init__(self, timeout_seconds: float) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._timeout = timeout_seconds
        group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout_seconds))
        assert group is not None
        self._group = group
        # Processes of one host read the same clock; small numbers are exact as doubles.
        self._one_host = len(set(self.gathered(socket.gethostname()))) == 1
        self._since_ns = self.decided(time.perf_counter_ns()) if self._one_host else time.perf_counter_ns()

    def begin(self) -> int:
        try:
            dist.monitored_barrier(self._group, timedelta(seconds=self._timeout), wait_all_ranks=True)
        except RuntimeError as error:
            # gloo names them: `Ranks 1, 3 failed to pass monitoredBarrier`.
            ranks, _, rest = str(error).partition(" failed to pass monitoredBarrier")
            who = ranks.rpartition("]")[2].strip().lower() if rest else "another rank"
            message = f"{who} did not come to the next call within {self._timeout:.0f} s (--timeout)"
            raise LateRankError(message, tuple(map(int, re.findall(r"\d+", who)))) from None
        if not self._one_host:
            return time.perf_counter_ns()
        (latest_ns,) = self.most(time.perf_counter_ns() - self._since_ns)
        begins_ns = int(latest_ns) + self._since_ns + AHEAD_NS
        while time.perf_counter_ns() < begins_ns:
            pass
        return time.perf_counter_ns()

    def took(self, began_ns: int, ended_ns: int) -> tuple[float, float]:
        own_us = (ended_ns - began_ns) / 1e3
        if not self._one_host:
            return self.most(own_us)[0], own_us
        # From when the last rank has begun: one that was not woken in time is no part of the call.
        began, ended = self.most(began_ns - self._since_ns, ended_ns - self._since_ns)
        wall_us = (ended - began) / 1e3
        # From when this one has: it may have ended before the last began. What is beyond the call is waiting for that.
        return wall_us, min(own_us, wall_us)

    def most(self, *values: float) -> tuple[float, ...]:
        found = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(found, dist.ReduceOp.MAX, self._group)
        return tuple(found.tolist())

    def decided(self, value: T) -> T:
        held: list[T] = [value]
        dist.broadcast_object_list(held, 0, self._group)
        return held[0]

    def gathered(self, value: T) -> list[T]:
        found: list[T] = [value] * self.size
        dist.all_gather_object(found, value, self._group)
        return found


@contextmanager
def meeting_place() -> Iterator[dict[str, str]]:
    """What tells the ranks of a job on this machine, in their environment, where they find each other: at this process,
    as long as the block lasts, at a port of loopback that was free."""
    # By itself the store listens on every network of the machine, and lets anybody write into it.
    server = socket.create_server((LOOPBACK, 0))
    port = server.getsockname()[1]
    kind: Any = dist.TCPStore  # type: ignore[attr-defined]
    store = kind(LOOPBACK, port, is_master=True, wait_for_workers=False, master_listen_fd=server.detach())
    yield {
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(store.port),
        # No rank listens there itself.
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


@contextmanager
def joined(timeout_seconds: float) -> Iterator[Lockstep]:
    """The job that a launcher has started this process for: its process group is up inside the block, by NCCL
    with a GPU for each rank, else by gloo. Raises TracekitError where there is no GPU for this rank, or no such job."""
    local, gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if gpus:
        if local >= gpus:
            there = f"rank {os.environ['RANK']} has no GPU, {platform.node()} has {gpus}"
            raise TracekitError(f"{there}: pass --nproc {gpus} (torchrun: --nproc-per-node {gpus})")
        torch.cuda.set_device(local)
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if gpus else "gloo", timeout=timedelta(seconds=timeout_seconds))
    except (dist.DistError, ValueError) as error:
        names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        rank, size, host, port = (os.environ.get(name) for name in names)
        why = str(error).partition("\n")[0].rstrip(".")
        mend = f" ({why}): start all ranks, with the same MASTER_ADDR and MASTER_PORT"
        if "EADDRINUSE" in str(error):
            mend = ": the port is in use; pass another one (MASTER_PORT, or torchrun --master-port)"
        raise TracekitError(f"rank {rank} of {size} cannot join the job at {host}:{port}{mend}") from None
    # Where the block raises, nobody waits for the others, who may never come.
    yield Lockstep(timeout_seconds)
    dist.barrier()
    if not gpus:
        # After CUDA graphs with collectives NCCL's end hangs: there the process ends with it.
        dist.destroy_process_group()
