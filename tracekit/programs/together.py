"""The ranks of a program: one, or those that a launcher started, which agree on each step before they switch."""

from __future__ import annotations

import datetime
import functools
from typing import Any, TypeVar

import torch.distributed as dist

from tracekit.errors import TracekitError

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
                self._group = dist.new_group(backend="gloo", timeout=PATIENCE)

        dist.init_process_group = begun
        dist.distributed_c10d.init_process_group = begun

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
