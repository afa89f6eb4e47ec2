"""What is known so far of two sides that are being put together, and what comes of it: cells."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, Literal, TypeVar

from msgspec import Struct, field

from tracekit.comparison.matching.anchors import cut_into_segments, tie_anchors
from tracekit.comparison.matching.units import Unit
from tracekit.model.comparison import MatchedBy

Thing = TypeVar("Thing", bound=Hashable)
#: A side, and a unit of it.
Node = tuple[Literal["plain", "fused"], int]


class Cell(Struct, frozen=True):
    """The activities of A and of B that do one piece of work: positions in the activities of the two sequences.

    Cells of one alignment are a partition: every position of either side is in exactly one. `where` names source lines
    or module paths, where they are known. `exact` is False where it was found by elimination, not one by one: what was
    left of both sides in one place, or what names alone tell.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    how: MatchedBy
    where: tuple[str, ...] = ()
    exact: bool = True


def check_partition(cells: tuple[Cell, ...], a_count: int, b_count: int) -> None:
    """Raises AssertionError where a position is in no cell or in two: no figure would add up."""
    for side, count, positions in (
        ("A", a_count, sorted(each for cell in cells for each in cell.a)),
        ("B", b_count, sorted(each for cell in cells for each in cell.b)),
    ):
        if positions != list(range(count)):
            raise AssertionError(f"the cells of {side} hold {len(positions)} positions, not each of {count} once")


class UnionFind(Generic[Thing]):
    """A partition that grows coarser: each thing knows another one of its group."""

    def __init__(self) -> None:
        self._parent: dict[Thing, Thing] = {}

    def join(self, things: Sequence[Thing]) -> None:
        """One group of all the groups these are in; a thing that is not known yet is a group of its own first."""
        for each in things:
            self._parent[self._root(each)] = self._root(things[0])

    def groups(self) -> list[list[Thing]]:
        """Each group's things, in the order in which they were first named."""
        found: dict[Thing, list[Thing]] = {}
        for each in self._parent:
            found.setdefault(self._root(each), []).append(each)
        return list(found.values())

    def _root(self, thing: Thing) -> Thing:
        while (parent := self._parent.setdefault(thing, thing)) != thing:
            self._parent[thing] = thing = self._parent[parent]
        return thing


class Side(Struct, frozen=True):
    """The units of one side, the segment of each, and which of them have found their place."""

    units: Sequence[Unit]
    segments: Sequence[int]
    done: set[int] = field(default_factory=set)

    def left(self) -> list[int]:
        return [at for at in range(len(self.units)) if at not in self.done]


class Pairing:
    """Units of two sides, and which belong together. Operators of the plain side are put to kernels of the fused side.
    `ties` are the library calls that do the same on both sides."""

    def __init__(self, plain: Sequence[Unit], fused: Sequence[Unit], *, by_names: bool) -> None:
        self.ties, self.by_names = tie_anchors(plain, fused), by_names
        plain_segments, fused_segments = cut_into_segments(self.ties, len(plain), len(fused))
        self.plain, self.fused = Side(plain, plain_segments), Side(fused, fused_segments)
        self.fused_tied = {j for tie in self.ties for j in tie.b}
        self._joined: UnionFind[Node] = UnionFind()
        self._inexact: set[Node] = set()
        for tie in self.ties:
            self.join(tie.a, tie.b, exact=tie.exact)

    def join(self, plain: Iterable[int], fused: Iterable[int], *, exact: bool = True) -> None:
        """These belong together, with all that belonged to one of them. Not `exact`: told by elimination."""
        plain, fused = list(plain), list(fused)
        nodes: list[Node] = [*(("plain", i) for i in plain), *(("fused", j) for j in fused)]
        self._joined.join(nodes)
        self.plain.done.update(plain)
        self.fused.done.update(fused)
        if not exact:
            self._inexact.update(nodes)

    def groups(self) -> list[tuple[list[int], list[int], bool]]:
        """Units of either side that belong together, and whether each was told one by one."""
        return [
            (
                [at for side, at in nodes if side == "plain"],
                [at for side, at in nodes if side == "fused"],
                self._inexact.isdisjoint(nodes),
            )
            for nodes in self._joined.groups()
        ]
