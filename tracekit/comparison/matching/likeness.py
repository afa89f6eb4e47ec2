"""Does a fused kernel do an operator's work? Its name lists operators, and its inputs have sizes."""

from __future__ import annotations

import math
from functools import cache

from tracekit.comparison.matching.operators import SPREAD
from tracekit.comparison.matching.units import Unit

#: Names of operators that say nothing, when others stand beside them.
GENERIC = frozenset(("copy", "to", "contiguous", "reshape"))
#: A tensor and a part of it, or several of them one behind the other, differ by a factor up to this.
LARGEST_FACTOR = 8
#: Tensors with fewer elements than this (a scalar, a mean of each row) are in many kernels and tell none.
TELLING = 256
#: Two lists of operators are alike from this share of common ones.
ALIKE = 0.5

NAMED, SIZED, PARTLY_SIZED, OTHER_SIZES = 1.0, 1.0, 0.8, 0.5


def likeness(plain: Unit, fused: Unit) -> float:
    """0 if the fused kernel's name does not list the operator; else 0.5 to 2.5, more the better the sizes agree."""
    if plain.fused is not None:
        return _alike(plain, fused)
    if not named_by(plain.words, fused.fused or ""):
        return 0.0
    return _by_sizes(plain.sizes, fused.sizes)


def same_size(plain: Unit, fused: Unit) -> bool:
    """Whether the operator's largest tensor is one of the kernel's, or a part of it; also where none is known."""
    return not plain.sizes or not fused.sizes or _agreement(max(plain.sizes), fused.sizes) > 0


@cache
def named_by(words: frozenset[str], fused: str) -> bool:
    telling = words - GENERIC or words
    return any(f"_{word}_" in fused for word in telling)


@cache
def spread_words(fused: str) -> frozenset[str]:
    """What of its operators one kernel may do in part only."""
    return frozenset(word for word in fused.split("_") if SPREAD.fullmatch(word))


def _alike(one: Unit, other: Unit) -> float:
    share = _common_share(one.fused or "", other.fused or "")
    return share * _by_sizes(one.sizes, other.sizes) if share >= ALIKE else 0.0


@cache
def _common_share(one: str, other: str) -> float:
    left, right = set(one.strip("_").split("_")), set(other.strip("_").split("_"))
    return len(left & right) / max(len(left | right), 1)


@cache
def _by_sizes(plain: frozenset[int], fused: frozenset[int]) -> float:
    if not plain or not fused or max(plain) < TELLING:
        return NAMED
    exact = len(plain & fused) / len(plain)
    agreement = _agreement(max(plain), fused)
    return NAMED + agreement + SIZED / 2 * exact if agreement else OTHER_SIZES + SIZED / 4 * exact


def _agreement(size: int, others: frozenset[int]) -> float:
    if size in others:
        return SIZED
    factors = [factor for other in others if (factor := _factor(min(size, other), max(size, other)))]
    return PARTLY_SIZED / math.sqrt(min(factors)) if factors else 0.0


def _factor(part: int, whole: int) -> int:
    """How many of the part make the whole; 0 where it is no part of it."""
    return whole // part if part > 1 and whole % part == 0 and whole // part <= LARGEST_FACTOR else 0
