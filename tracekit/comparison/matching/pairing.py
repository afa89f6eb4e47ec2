"""What is known so far of two sides that are being put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from tracekit.comparison.matching.anchors import tie_anchors
from tracekit.comparison.matching.segments import cut_into_segments
from tracekit.comparison.matching.union_find import Together
from tracekit.comparison.matching.units import Unit

#: A side, and a unit of it.
Node = tuple[Literal["plain", "fused"], int]


class Pairing:
    """Units of two sides: where each stands among the library calls, and which belong together. Operators of the plain
    side are put to kernels of the fused side.

    `ties` are the library calls that do the same on both sides; `plain_done` and `fused_done` what has found its place.
    """

    def __init__(self, plain: Sequence[Unit], fused: Sequence[Unit], *, by_names: bool) -> None:
        self.plain, self.fused, self.by_names = plain, fused, by_names
        self.ties = tie_anchors(plain, fused)
        segments = cut_into_segments(self.ties, len(plain), len(fused))
        self.plain_segments, self.fused_segments = segments.a, segments.b
        self.fused_tied = {j for tie in self.ties for j in tie.b}
        self.plain_done: set[int] = set()
        self.fused_done: set[int] = set()
        self._together: Together[Node] = Together()
        self._inexact: set[Node] = set()
        for tie in self.ties:
            self.join(tie.a, tie.b, exact=tie.exact)

    def join(self, plain: Iterable[int], fused: Iterable[int], *, exact: bool = True) -> None:
        """These belong together, with all that belonged to one of them. Not `exact`: told by elimination."""
        plain, fused = list(plain), list(fused)
        nodes: list[Node] = [*(("plain", i) for i in plain), *(("fused", j) for j in fused)]
        self._together.join(nodes)
        self.plain_done.update(plain)
        self.fused_done.update(fused)
        if not exact:
            self._inexact.update(nodes)

    def plain_left(self) -> list[int]:
        return [i for i in range(len(self.plain)) if i not in self.plain_done]

    def fused_left(self) -> list[int]:
        return [j for j in range(len(self.fused)) if j not in self.fused_done]

    def groups(self) -> list[tuple[list[int], list[int], bool]]:
        """Units of either side that belong together, and whether each was told one by one."""
        return [
            (
                [at for side, at in nodes if side == "plain"],
                [at for side, at in nodes if side == "fused"],
                self._inexact.isdisjoint(nodes),
            )
            for nodes in self._together.groups()
        ]
