"""The ranks of a program: one, or those that a launcher started, which agree on each step before they switch."""

from __future__ import annotations

import datetime
import functools
from contextlib import suppress
from typing import Any, TypeVar

import torch.distributed as dist

from tracekit.errors import TracekitError
from tracekit.measure.ranks import rank_of_job

T = TypeVar("T")
#: How long ranks wait for one that does not come to the same step.
PATIENCE = datetime.timedelta(seconds=60)


class Together:
    """The ranks that make each step together, by a gloo group of our own; alone while the program has no group."""

    def __init__(self) -> None:
        self.rank, self.size = 0, 1
        self._group: Any = None

    def install(self) -> None:
        """The group is made where the program makes its own: there alone all ranks surely come to one place."""
        if not dist.is_available():
            return
        begin = dist.init_process_group

        @functools.wraps(begin)
        def begun(*args: Any, **options: Any) -> None:
            begin(*args, **options)
            if self._group is None and dist.get_world_size() > 1:
                self.rank, self.size = dist.get_rank(), dist.get_world_size()
                with suppress(Exception):
                    self._group = dist.new_group(backend="gloo", timeout=PATIENCE)

        # `device_mesh` has a name of its own for it.
        for module in (dist, dist.distributed_c10d, dist.device_mesh):
            if getattr(module, "init_process_group", None) is begin:
                setattr(module, "init_process_group", begun)  # noqa: B010 - of one of them mypy knows no such name.

    def check(self) -> None:
        """Raises TracekitError where there are other ranks that could not be asked before anything is switched."""
        if self._group is None and rank_of_job()[1] > 1:
            raise TracekitError("there are several ranks, and no process group of theirs was seen to begin")

    def all(self, value: T) -> list[T]:
        """What each rank says, in their order. Raises TracekitError where not all come here, to be said once."""
        if self._group is None:
            return [value]
        told: list[Any] = [None] * self.size
        try:
            dist.all_gather_object(told, value, group=self._group)
        except Exception as error:
            raise TracekitError(f"not all of the {self.size} ranks came to the same step") from error
        return told

    def first(self, value: T) -> T:
        """What rank 0 says."""
        return self.all(value)[0]

    def close(self) -> None:
        """The group's threads end with it: one that is alive when Python ends may abort the process."""
        group, self._group = self._group, None
        if group is not None:
            # The program may have destroyed all groups, ours too.
            with suppress(Exception):
                dist.destroy_process_group(group)
