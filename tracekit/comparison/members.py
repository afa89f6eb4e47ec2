"""The kernels of a group, by name."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tracekit.model.comparison import GroupMember


def largest_first(members: Iterable[GroupMember]) -> tuple[GroupMember, ...]:
    return tuple(sorted(members, key=lambda member: (-member.total_us, member.name)))


def time_of(members: Iterable[GroupMember]) -> float:
    """Microseconds per step."""
    return math.fsum(member.total_us for member in members)
