"""Things that belong together, found pair by pair."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

Thing = TypeVar("Thing", bound=Hashable)


class Together(Generic[Thing]):
    """A partition that grows coarser: each thing knows another one of its group (union-find)."""

    def __init__(self) -> None:
        self._other: dict[Thing, Thing] = {}

    def join(self, things: Sequence[Thing]) -> None:
        """One group of all the groups these are in; a thing that is not known yet is a group of its own first."""
        for each in things:
            self._other[self._first(each)] = self._first(things[0])

    def groups(self) -> list[list[Thing]]:
        """Each group's things, in the order in which they were first named."""
        found: dict[Thing, list[Thing]] = {}
        for each in self._other:
            found.setdefault(self._first(each), []).append(each)
        return list(found.values())

    def _first(self, thing: Thing) -> Thing:
        while (other := self._other.setdefault(thing, thing)) != thing:
            self._other[thing] = thing = self._other[other]
        return thing
