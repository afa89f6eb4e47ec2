"""How many places in a step need more kernels on the new side, and how many more may do so unseen?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tracekit.comparison.members import time_of
from tracekit.model.comparison import GroupMember, KernelGroup

Members = tuple[GroupMember, ...]

#: Up to this share of a side's GPU time may be left unmatched, and what was matched still speaks for the step.
MOST_UNKNOWN = 0.05


@dataclass(frozen=True, slots=True)
class LostGroups:
    """`seen` is how many places there are for sure, `most` how many there may be. `unknown` is the share of GPU time,
    of the side where it is larger, whose counterpart is not known: unmatched, or matched by family alone."""

    seen: float
    most: float
    unknown: float


def find_lost_groups(groups: Iterable[KernelGroup]) -> LostGroups:
    """A group that is there 12 times counts 12. What is not known may hide places where that is more than
    `MOST_UNKNOWN`: one for every two kernels of B in it, as a place that needs more has two at least."""
    groups = tuple(groups)
    seen = math.fsum(group.repeats for group in groups if group.kind == "defused")
    doubtful = tuple(filter(_is_unknown, groups))
    unknown = max(
        _share((group.a for group in doubtful), (group.a for group in groups)),
        _share((group.b for group in doubtful), (group.b for group in groups)),
    )
    if unknown <= MOST_UNKNOWN:
        return LostGroups(seen, seen, unknown)
    kernels = math.fsum(member.count for group in doubtful for member in group.b)
    return LostGroups(seen, seen + max(math.floor(kernels / 2), 1), unknown)


def _is_unknown(group: KernelGroup) -> bool:
    # Kernels of one name, and as many of them, are the same work: names tell that much.
    return group.kind == "unmatched" or (group.how == "names" and group.kind != "unchanged")


def _share(some: Iterable[Members], every: Iterable[Members]) -> float:
    whole = math.fsum(map(time_of, every))
    return math.fsum(map(time_of, some)) / whole if whole else 0.0
