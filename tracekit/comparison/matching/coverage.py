"""How much of the GPU time was matched, how certainly, and how much is known of it?"""

import math
from collections.abc import Sequence

from tracekit.comparison.matching.groups_by_name import time_of
from tracekit.model.comparison import Coverage, KernelGroup, Side
from tracekit.model.note import Note
from tracekit.model.sequence import MOST_ACTIVITIES, TrafficTotal
from tracekit.statements.notes import matching as notes

#: With shapes for fewer of a side's operators than this, sizes cannot tell kernels apart.
MOST_WITH_SHAPES = 0.5
#: Below this share of GPU time matched the two may be different work.
LEAST_MATCHED = 0.9
#: Above this share of GPU time linked by elimination the groups are doubtful as a whole.
MOST_INEXACT = 0.6
#: Traffic of kernels that are less than this share of a side's GPU time is no figure of the call.
LEAST_KNOWN = 0.5
#: Up to this share of a side's GPU time may be left unmatched, and what was matched still speaks for the step.
MOST_UNKNOWN = 0.05


def measure_coverage(groups: Sequence[KernelGroup]) -> Coverage:
    """How much of each side's GPU time was matched, and how; of a side that did nothing all was."""
    matched = [group for group in groups if group.a and group.b and group.kind != "unmatched"]
    inexact = [group for group in matched if not group.exact]
    one_sided = [group for group in groups if group.kind in ("eliminated", "added")]
    a_matched, b_matched = _shares(matched, groups, of_nothing=1.0)
    a_inexact, b_inexact = _shares(inexact, groups)
    return Coverage(a_matched, b_matched, a_inexact, b_inexact, *_shares(one_sided, groups))


def _shares(some: Sequence[KernelGroup], every: Sequence[KernelGroup], of_nothing: float = 0.0) -> tuple[float, float]:
    """The share of A's and of B's GPU time that some of the groups hold, 0 to 1."""
    a_us, b_us = math.fsum(time_of(group.a) for group in every), math.fsum(time_of(group.b) for group in every)
    return (
        min(math.fsum(time_of(group.a) for group in some) / a_us, 1.0) if a_us else of_nothing,
        min(math.fsum(time_of(group.b) for group in some) / b_us, 1.0) if b_us else of_nothing,
    )


def find_doubts(*sides: Side) -> tuple[Note, ...]:
    """A note for each side whose work is matched by less than operators with shapes, or is too much."""
    found: list[Note] = []
    for side in sides:
        kernels, copies, cpu = side.analysis.kernels, side.analysis.copies, side.analysis.cpu
        activities = (kernels.count if kernels else 0) + (copies.memcpy_count + copies.memset_count if copies else 0)
        operators = cpu.operator_count if cpu else 0
        if side.sequence is None and max(activities, operators) > MOST_ACTIVITIES:
            found.append(notes.TooManyToMatch(side.label, operators or None, activities or None))
        asked = [each.operator for each in (side.sequence.activities if side.sequence else ()) if each.operator]
        if side.sequence and side.sequence.activities and side.sequence.operators == "none":
            found.append(notes.NoOperators(side.label))
        elif sum(bool(operator.dims) for operator in asked) < MOST_WITH_SHAPES * len(asked):
            found.append(notes.NoShapes(side.label))
    return tuple(found)


def find_little_matched(coverage: Coverage | None) -> tuple[Note, ...]:
    """A note where so little was matched that the sides may not be the same model."""
    if coverage is None:
        return ()
    # Of what is gone or new is known that it has no counterpart.
    known = {"A": coverage.a_time_matched + coverage.a_time_alone, "B": coverage.b_time_matched + coverage.b_time_alone}
    below = {letter: share for letter, share in known.items() if share < LEAST_MATCHED}
    return (notes.LittleMatched(below),) if below else ()


def find_inexact(
    groups: Sequence[KernelGroup], why: notes.NoProvenance | None = None, *, bare: bool = True
) -> tuple[Note, ...]:
    """A note where most of a side's GPU time was aligned by elimination, so that groups may hold others' kernels,
    or where provenance is of no use, for the reason `why`. For bare traces with what would bring it. Matching by names
    alone has a note of its own (`find_doubts`).

    Without provenance that is so of products that Inductor wrote itself (max-autotune), which have no operator's sizes:
    on ViT the groups then agreed with provenance by a fifth.
    """
    shares = _shares([group for group in groups if group.how == "anchors" and not group.exact], groups)
    most = {letter: share for letter, share in zip("AB", shares, strict=True) if share > MOST_INEXACT}
    if not most:
        return (notes.ProvenanceUnused(why),) if why else ()
    return (notes.MatchedByElimination(most, why, advise_profile=bare and not why),)


def find_lost_groups(groups: Sequence[KernelGroup]) -> tuple[float, float, float]:
    """How many places in a step need more kernels on the new side, for sure and at most, and the share of GPU time, of
    the side where it is larger, whose counterpart is not known: unmatched, or matched by names alone.

    A group that is there 12 times counts 12. What is not known may hide places where that is more than `MOST_UNKNOWN`:
    one for every two kernels of B in it, as a place that needs more has two at least.
    """
    seen = math.fsum(group.repeats for group in groups if group.kind == "defused")
    # Kernels of one name, and as many of them, are the same work: names tell that much.
    doubtful = [
        group for group in groups if group.kind == "unmatched" or (group.how == "names" and group.kind != "unchanged")
    ]
    unknown = max(_shares(doubtful, groups))
    if unknown <= MOST_UNKNOWN:
        return seen, seen, unknown
    kernels = math.fsum(member.count for group in doubtful for member in group.b)
    return seen, seen + max(math.floor(kernels / 2), 1), unknown


def total_traffic(groups: Sequence[KernelGroup]) -> TrafficTotal | None:
    """The traffic of the groups in which it is known of every call of both sides, per step, and how much of the GPU
    time these are, without communication; None where that is less than half of either side's, and where a side would
    have moved nothing."""
    groups = [group for group in groups if group.kind != "communication"]
    known = [(group, group.traffic) for group in groups if group.traffic and group.traffic.removed_bytes is not None]
    eager = math.fsum(traffic.eager_bytes or 0.0 for _, traffic in known)
    compiled = math.fsum(traffic.compiled_bytes or 0.0 for _, traffic in known)
    shares = _shares([group for group, _ in known], groups, of_nothing=1.0)
    return TrafficTotal(eager, compiled, *shares) if eager and compiled and min(shares) >= LEAST_KNOWN else None
