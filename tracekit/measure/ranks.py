"""The ranks that make the calls of a run: one process, or many that begin each call together."""

import os
import time
from typing import Protocol, TypeVar

T = TypeVar("T")


class Ranks(Protocol):
    """The ranks that make the calls; of a run of one process, that one."""

    rank: int
    size: int

    def begin(self) -> int:
        """Waits until all ranks have come to the next call; returns the moment it begins, by `perf_counter_ns`. Raises
        LateRankError with the ranks that did not come in time."""

    def took(self, began_ns: int, ended_ns: int) -> tuple[float, float]:
        """Microseconds of a call until the slowest rank has ended it, from when all had begun; and from this rank's
        begin to its end, `began_ns` and `ended_ns`, of which no more counts than the call took."""

    def most(self, *values: float) -> tuple[float, ...]:
        """Each value of the rank where it is largest."""

    def decided(self, value: T) -> T:
        """What the first rank says."""

    def gathered(self, value: T) -> list[T]:
        """What each rank says, in their order."""


class OneProcess:
    """No other ranks."""

    rank, size = 0, 1

    def begin(self) -> int:
        return time.perf_counter_ns()

    def took(self, began_ns: int, ended_ns: int) -> tuple[float, float]:
        return (ended_ns - began_ns) / 1e3, (ended_ns - began_ns) / 1e3

    def most(self, *values: float) -> tuple[float, ...]:
        return values

    def decided(self, value: T) -> T:
        return value

    def gathered(self, value: T) -> list[T]:
        return [value]


ALONE = OneProcess()


def rank_of_job() -> tuple[int, int]:
    """This process's rank and how many there are: those of its process group, or else what its launcher has told it."""
    # Imports torch, as nothing else here does.
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    told = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE")]
    rank, size = map(int, told) if all(each.isdecimal() for each in told) else (0, 1)
    return rank, size
