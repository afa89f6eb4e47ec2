"""What makes the matching of kernels less certain than it could be?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tracekit.model.comparison import Coverage, GroupMember, KernelGroup, Side
from tracekit.model.note import Note

#: With shapes for fewer of a side's operators than this, sizes cannot tell kernels apart.
MOST_WITH_SHAPES = 0.5
#: Below this share of GPU time matched the two may be different work.
LEAST_MATCHED = 0.9
#: Above this share of GPU time linked by elimination the groups are doubtful as a whole.
MOST_INEXACT = 0.6


def find_doubts(*sides: Side) -> tuple[Note, ...]:
    """A note for each side whose kernels are matched by less than operators with shapes."""
    return tuple(doubt for side in sides if (doubt := _doubt(side)) is not None)


def find_strangers(coverage: Coverage | None) -> tuple[Note, ...]:
    """A note where so little was matched that the sides may not be the same model."""
    if coverage is None:
        return ()
    # What is known to be gone or new has been told apart too.
    known = {
        "A": coverage.a_time_matched + coverage.a_time_alone,
        "B": coverage.b_time_matched + coverage.b_time_alone,
    }
    if min(known.values()) >= LEAST_MATCHED:
        return ()
    below = {letter: share for letter, share in known.items() if share < LEAST_MATCHED}
    return (Note("little_matched", facts={"matched_shares": below}),)


def find_mixed(groups: Iterable[KernelGroup], why: str | None = None, *, bare: bool = True) -> tuple[Note, ...]:
    """A note where most of a side's GPU time was aligned by elimination, so that groups may hold others' kernels,
    or where provenance is of no use, which `why` tells. Bare traces hear what would bring it. Matching by names alone
    has a note of its own (`find_doubts`).

    Without provenance that is so of products that Inductor wrote itself (max-autotune), which have no operator's sizes:
    on ViT the groups then agreed with provenance by a fifth.
    """
    groups = tuple(groups)
    shares = {"A": _mixed([(each, each.a) for each in groups]), "B": _mixed([(each, each.b) for each in groups])}
    most = {letter: share for letter, share in shares.items() if share > MOST_INEXACT}
    if not most:
        return (Note("provenance_unused", "info", facts={"why": why}),) if why else ()
    advised = bare and not why
    facts = {"shares": most, "no_provenance": why, "advise_profile": advised}
    return (Note("matched_by_elimination", facts=facts),)


def _mixed(groups: Sequence[tuple[KernelGroup, Sequence[GroupMember]]]) -> float:
    """The share of one side's GPU time in groups that were aligned, and not exactly."""
    times = [(group, math.fsum(member.total_us for member in members)) for group, members in groups]
    whole = math.fsum(us for _, us in times)
    return math.fsum(us for group, us in times if group.how == "anchors" and not group.exact) / whole if whole else 0.0


def _doubt(side: Side) -> Note | None:
    work = side.sequence
    if work is None or not work.activities:
        return None
    if work.operators == "none":
        return Note("no_operators", subject=side.label)
    asked = [each.operator for each in work.activities if each.operator]
    if sum(bool(operator.dims) for operator in asked) < MOST_WITH_SHAPES * len(asked):
        return Note("no_shapes", subject=side.label)
    return None
