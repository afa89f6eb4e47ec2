"""Which work of one recording is which of another."""

from __future__ import annotations

from msgspec import Struct

from tracekit.model.comparison import KernelGroup
from tracekit.model.sequence import Sequence


class MatchedWork(Struct, frozen=True):
    """One piece of work: positions in the activities of either side's sequence, and the group it is in."""

    group: KernelGroup
    a: tuple[int, ...]
    b: tuple[int, ...]
    where: tuple[str, ...]


class Matching(Struct, frozen=True):
    """All work of two sides, piece by piece: every position of either sequence is in exactly one piece."""

    a: Sequence
    b: Sequence
    work: tuple[MatchedWork, ...]
