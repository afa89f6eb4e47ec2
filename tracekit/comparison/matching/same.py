"""Work that is the same on both sides, between the same library calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tracekit.comparison.matching.pairing import Pairing
from tracekit.comparison.matching.subsequence import common_subsequence
from tracekit.comparison.matching.units import Unit


def join_same(pairing: Pairing) -> None:
    """Units of one segment that are the same on both sides: by kernel and operator, then by operator alone."""
    for key in (_kernels if pairing.by_names else _kernels_and_operators, _operators):
        left = _by_segment(pairing.plain_left(), pairing.plain, pairing.plain_segments)
        right = _by_segment(pairing.fused_left(), pairing.fused, pairing.fused_segments)
        for segment in left.keys() & right.keys():
            plain, fused = left[segment], right[segment]
            keys = [key(pairing.plain[i]) for i in plain]
            for i, j in common_subsequence(keys, [key(pairing.fused[j]) for j in fused]):
                if keys[i] is not None:
                    pairing.join([plain[i]], [fused[j]])


def _kernels(unit: Unit) -> object:
    return unit.signature.names


def _kernels_and_operators(unit: Unit) -> object:
    return unit.signature


def _operators(unit: Unit) -> object:
    """With their inputs' shapes; None where nothing is known or a kernel is fused."""
    return None if unit.fused or not unit.signature.operators else unit.signature.operators


def _by_segment(left: Iterable[int], units: Sequence[Unit], segments: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for at in left:
        if units[at].kind is None:
            found[segments[at]].append(at)
    return found
