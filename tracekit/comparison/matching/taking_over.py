"""Work that a library call of the other side does itself: `mm` and `add` that became one `addmm`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile

from tracekit.comparison.matching.epilogues import done_beside
from tracekit.comparison.matching.pairing import Pairing
from tracekit.comparison.matching.units import Unit


def join_taken_over(pairing: Pairing) -> None:
    """What stands right behind a library call and has no partner, where the call's partner does that work and the call
    does not. Each kind of work once; exact where it has the size of the product and nothing else could be meant."""
    if pairing.by_names:
        return
    plain_left, fused_left = set(pairing.plain_left()), set(pairing.fused_left())
    for tie in pairing.ties:
        if len(tie.a) == len(tie.b) == 1:
            one, other = done_beside(pairing.plain[tie.a[0]]), done_beside(pairing.fused[tie.b[0]])
            for at, exact in _taken(pairing.plain, tie.a[0], plain_left, other - one):
                pairing.join([at, *tie.a], tie.b, exact=exact)
            for at, exact in _taken(pairing.fused, tie.b[0], fused_left, one - other):
                pairing.join(tie.a, [at, *tie.b], exact=exact)


def _taken(units: Sequence[Unit], call: int, left: set[int], words: frozenset[str]) -> Iterator[tuple[int, bool]]:
    """Of what is left behind the call the first unit for each of the words, and whether that is sure."""
    stretch = list(takewhile(left.__contains__, range(call + 1, len(units)))) if words else []
    size = _size_of_result(units[call])
    for word in sorted(words):
        fitting = [at for at in stretch if _does(units[at], word) and _may_have(size, units[at])]
        if fitting:
            yield fitting[0], len(fitting) == 1 and size in units[fitting[0]].sizes


def _does(unit: Unit, word: str) -> bool:
    """Whether the unit is that operator, or a Triton kernel that does nothing but that."""
    if unit.kind is not None or unit.copies:
        return False
    return word in unit.words if unit.fused is None else unit.fused.strip("_") == word


def _size_of_result(call: Unit) -> int | None:
    """How many elements the product has; None where that is not known."""
    return math.prod(call.size[:3]) if call.kind == "product" and call.size else None


def _may_have(size: int | None, unit: Unit) -> bool:
    return size is None or not unit.sizes or size in unit.sizes
