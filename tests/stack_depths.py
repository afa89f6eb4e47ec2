"""At how many depths of Python's stack does a loop call across the end of a chunk of it?"""

import resource
from types import FunctionType

#: In a loop of so many calls, each of which maps a chunk and touches it, so many pages are missed and hardly fewer.
CALLS, MISSED = 200, 150
#: Frames of at least 80 bytes, so many that they go over an end of 16 KiB, each of which is less than what is called.
DEPTHS, SLOTS = 220, 200


def _leaf() -> None:
    return None


_large_leaf = FunctionType(_leaf.__code__.replace(co_stacksize=SLOTS), globals())


def _misses() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        _large_leaf()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def count_crossings(depths: int = DEPTHS) -> int:
    """Of so many depths from here on, those whose loop pays for mapping in every call. Pythons that keep the chunk have
    none: such as 3.13 since March 2026."""
    crossing = _misses() > MISSED
    return crossing + (count_crossings(depths - 1) if depths else 0)
