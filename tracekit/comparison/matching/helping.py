"""Kernels that have a part in work which is already matched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracekit.comparison.matching.assigning import MOST, REACH
from tracekit.comparison.matching.likeness import named_by, spread_words
from tracekit.comparison.matching.pairing import Pairing
from tracekit.comparison.matching.units import Unit


def join_helpers(pairing: Pairing) -> None:
    """Kernels that got no operator but belong to one that did: part of a norm, of attention, of a product."""
    left = [j for j in pairing.fused_left() if pairing.fused[j].fused]
    while left:
        found = {j: other for j in left if (other := _helped_by(pairing, j)) is not None}
        for j, other in found.items():
            pairing.join([], [j, other])
        # Of several that do a row together the next stands beside one that is placed now.
        left = [j for j in left if j not in found] if found else []


def _helped_by(pairing: Pairing, j: int) -> int | None:
    """The unit whose work kernel j has a part in; None where nothing says so."""
    around = (*_near(pairing, range(j + 1, len(pairing.fused)), j), *_near(pairing, range(j - 1, -1, -1), j))
    around = tuple(other for other in around if other in pairing.fused_done and _shares_size(pairing, j, other))
    ways = (_rest_of_row, _taken_apart_near, _library_call)
    return next((other for way in ways if (other := way(pairing, j, around)) is not None), None)


def _rest_of_row(pairing: Pairing, j: int, around: Sequence[int]) -> int | None:
    """The kernel that does the rest of what this one does of a row, and reads what it wrote or wrote what it reads:
    in the same place the next or the last one, else the next or the last within reach."""
    words = spread_words(pairing.fused[j].fused or "")
    for other in sorted(around, key=lambda each: pairing.fused_segments[each] != pairing.fused_segments[j]):
        if words & spread_words(pairing.fused[other].fused or ""):
            return other
    return None


def _taken_apart_near(pairing: Pairing, _: int, around: Sequence[int]) -> int | None:
    """A product of attention that was taken apart, which this kernel prepares or finishes."""
    apart = {each for tie in pairing.ties if len(tie.b) > 1 for each in tie.b}
    return next((other for other in around if other in apart), None)


def _library_call(pairing: Pairing, j: int, around: Sequence[int]) -> int | None:
    """The library call whose operator the kernel's name lists: it lays out inputs, or adds what the call no longer
    does itself."""
    names = pairing.fused[j].fused or ""
    tied = (other for other in around if other in pairing.fused_tied)
    return next((other for other in tied if named_by(pairing.fused[other].words, names)), None)


def _near(pairing: Pairing, units: Iterable[int], j: int) -> Iterable[int]:
    """Those of the fused side within reach of unit j, as long as they follow one another."""
    for count, other in enumerate(units):
        if count == MOST or abs(pairing.fused_segments[other] - pairing.fused_segments[j]) > REACH:
            return
        yield other


def _shares_size(pairing: Pairing, one: int, other: int) -> bool:
    left, right = pairing.fused[one].sizes, pairing.fused[other].sizes
    return not left or not right or not left.isdisjoint(right)


def join_own_work(pairing: Pairing) -> None:
    """Element-wise work of a library call that nobody else does stays with the call."""
    for i in pairing.plain_left():
        call = _call_beside(pairing.plain, i)
        if call is not None:
            pairing.join([i, call], [])
    for j in pairing.fused_left():
        call = _call_beside(pairing.fused, j)
        if call is not None:
            pairing.join([], [j, call])


def _call_beside(units: Sequence[Unit], at: int) -> int | None:
    """The unit of the library call that this one is part of; None where it is not."""
    if not units[at].own:
        return None
    beside = (each for each in (at - 1, at + 1) if 0 <= each < len(units))
    return next((each for each in beside if units[each].call == units[at].call), None)
