"""What has found no partner: is it gone, is it new, or does nobody know?

Nothing is called gone for want of a partner alone. It takes evidence: everything around it is matched, and on the other
side nothing is left that could do its work. docs/kinds.md has the rule in words.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracekit.comparison.matching.anchors import Tie
from tracekit.comparison.matching.assigning import REACH
from tracekit.comparison.matching.epilogues import NOTHING, done_beside
from tracekit.comparison.matching.likeness import likeness
from tracekit.comparison.matching.pairing import Pairing
from tracekit.comparison.matching.units import Unit

#: What is left of both sides in one place is one cell up to so many units; more of them is no place.
FEW = 40


def join_places(pairing: Pairing) -> None:
    """What is left of both sides between two library calls that are the same ones on both: told by elimination."""
    places: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for i in pairing.plain_left():
        places[pairing.plain_segments[i]][0].append(i)
    for j in pairing.fused_left():
        places[pairing.fused_segments[j]][1].append(j)
    for plain, fused in places.values():
        if plain and fused and _is_one_place(pairing, plain, fused):
            pairing.join(plain, fused, exact=False)


def _is_one_place(pairing: Pairing, plain: list[int], fused: list[int]) -> bool:
    """Without library calls of its own, nor copies, which no kernel does instead."""
    units = [*(pairing.plain[i] for i in plain), *(pairing.fused[j] for j in fused)]
    return (
        bool(pairing.ties)
        and not any(unit.kind or unit.copies for unit in units)
        and max(len(plain), len(fused)) <= FEW
    )


@dataclass(frozen=True, slots=True)
class Alone:
    """Units of each side for which it is certain that the other side has no counterpart."""

    plain: frozenset[int]
    fused: frozenset[int]


def find_alone(pairing: Pairing) -> Alone:
    """Of what is left, once all else is joined."""
    if pairing.by_names:
        # Names of kernels tell too little to say that nothing does the same.
        return Alone(frozenset(), frozenset())
    plain_left, fused_left = pairing.plain_left(), pairing.fused_left()
    plain_matched, fused_matched = _matched(pairing)
    plain_taken, fused_taken = _taken_over(pairing)
    plain = _Stretch(pairing.plain, pairing.plain_segments, plain_left, plain_matched, plain_taken)
    fused = _Stretch(pairing.fused, pairing.fused_segments, fused_left, fused_matched, fused_taken)
    return Alone(
        frozenset(i for i in plain_left if _is_alone(i, plain, fused)),
        frozenset(j for j in fused_left if _is_alone(j, fused, plain)),
    )


def _matched(pairing: Pairing) -> tuple[set[int], set[int]]:
    """Units of each side that have a partner on the other, and not by elimination. A library call that is another one
    on the other side is none of them: nobody knows what else that does."""
    both = [(plain, fused) for plain, fused, exact in pairing.groups() if plain and fused and exact]
    changed = [tie for tie in pairing.ties if not _is_same_call(pairing, tie)]
    plain, fused = {i for plain, _ in both for i in plain}, {j for _, fused in both for j in fused}
    return plain.difference(*(tie.a for tie in changed)), fused.difference(*(tie.b for tie in changed))


def _is_same_call(pairing: Pairing, tie: Tie) -> bool:
    """Whether the same operators launch the same kernels on both sides."""
    if not len(tie.a) == len(tie.b) == 1:
        return False
    one, other = pairing.plain[tie.a[0]].signature, pairing.fused[tie.b[0]].signature
    operators, others = ([name for name, _ in each.operators] for each in (one, other))
    return one.names == other.names and operators == others


def _taken_over(pairing: Pairing) -> tuple[dict[int, frozenset[str]], dict[int, frozenset[str]]]:
    """By segment, for either side: what library calls of the other side do there that their partners do not."""
    plain: dict[int, frozenset[str]] = {}
    fused: dict[int, frozenset[str]] = {}
    for tie in pairing.ties:
        one = NOTHING.union(*(done_beside(pairing.plain[i]) for i in tie.a))
        other = NOTHING.union(*(done_beside(pairing.fused[j]) for j in tie.b))
        segment = pairing.plain_segments[tie.a[0]]
        plain[segment] = plain.get(segment, NOTHING) | (other - one)
        fused[segment] = fused.get(segment, NOTHING) | (one - other)
    return plain, fused


@dataclass(frozen=True, slots=True)
class _Stretch:
    """One side: its units and their segments, what is left of it and what is matched. `taken` is what library calls of
    the other side do there, and its own do not."""

    units: Sequence[Unit]
    segments: Sequence[int]
    left: Sequence[int]
    matched: set[int]
    taken: Mapping[int, frozenset[str]]

    def within_reach(self, segment: int) -> range:
        low = bisect_left(self.segments, segment - REACH)
        return range(low, bisect_right(self.segments, segment + REACH))

    def may_be_taken_over(self, at: int) -> bool:
        segment = self.segments[at]
        near = (self.taken.get(each, NOTHING) for each in range(segment - REACH, segment + REACH + 1))
        return not self.units[at].words.isdisjoint(NOTHING.union(*near))


def _is_alone(at: int, own: _Stretch, other: _Stretch) -> bool:
    """Whether the units before and behind it are matched, nothing is left of the other side within reach, and no kernel
    there names what this one does, nor has a library call there taken it over."""
    unit, near = own.units[at], other.within_reach(own.segments[at])
    if unit.kind is not None or not (unit.words or unit.fused) or not _is_enclosed(at, own):
        return False
    if own.may_be_taken_over(at) or bisect_left(other.left, near.start) != bisect_left(other.left, near.stop):
        return False
    return not any(_are_alike(unit, other.units[each]) for each in near)


def _is_enclosed(at: int, own: _Stretch) -> bool:
    """Whether what stands next to it, others that are left aside, is matched; where the step begins or ends, on the one
    side that there is."""
    before, behind = at - 1, at + 1
    while _is_left(before, own):
        before -= 1
    while _is_left(behind, own):
        behind += 1
    beside = [each for each in (before, behind) if 0 <= each < len(own.units)]
    return bool(beside) and all(each in own.matched for each in beside)


def _is_left(at: int, own: _Stretch) -> bool:
    place = bisect_left(own.left, at)
    return place < len(own.left) and own.left[place] == at


def _are_alike(one: Unit, other: Unit) -> bool:
    """Whether a fused kernel names what the other does."""
    if one.fused is not None and other.fused is None:
        one, other = other, one
    return other.fused is not None and other.kind is None and likeness(one, other) > 0
