"""Where did the time go, and why?

A's wall, plus the change of every part, plus the residual, is B's wall. The change is GPU work, communication that had
the GPU to itself, and waiting.
"""

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.comparison import (
    BUSY_MOVES,
    NAMED_SHARE,
    KernelGroup,
    Reason,
    ReasonShare,
    Side,
    Verdict,
    comparable,
)
from tracekit.model.groups import GroupLabel, Label
from tracekit.model.idle_estimate import changes_between
from tracekit.model.waterfall import Basis, PartKind, Waterfall, WaterfallPart

#: At most this many kernel groups have a part of their own, and only those that change the wall by this share.
MOST_GROUPS = 8
SMALLEST_SHARE = 0.005

OTHER_KERNELS = "other_gpu_work"
#: Kernels of the same name and count differ by clocks and caches only, so together they make one part.
SAME_KERNELS = "unchanged_kernels"
OVERLAP = "overlap_correction"
OUTSIDE = "outside_steps"
#: How long one rank communicates depends on when the others come, so no kernel is to blame for the change.
EXPOSED = "exposed_communication"
#: Parts that are what is left of others, and name nothing.
REST = (OTHER_KERNELS, OVERLAP, OUTSIDE)

#: A share is named from this part of the change on, and what nothing explains from a larger one.
LEAST_SHARE = 0.02
UNEXPLAINED = 0.05
MOST_NAMED = 2
#: GPU work that became worse is named too from this part of the share on.
AGAINST = 0.3


def build_waterfall(
    a: Side, b: Side, groups: Sequence[KernelGroup], exposed: tuple[WaterfallPart, ...] = ()
) -> Waterfall | None:
    """None when a side has no figures of one GPU (idle time of several does not add up to wall time), and when one was
    read per step and the other whole.

    The ends are the unprofiled median walls where both sides have them and their recordings were read by steps; idle
    parts are then without what recording added to each side (`Side.calibrated_idle_by_cause`), and idle time that
    their causes do not explain is in the residual. Else the ends are the recorded windows, and idle parts as recorded.
    `exposed` is what exposed communication's change is made of, where other ranks' recordings tell.
    """
    if len(a.analysis.devices) != 1 or len(b.analysis.devices) != 1 or not (a.analysis.gpu and b.analysis.gpu):
        return None
    if not comparable(a, b):
        return None
    basis = common_basis(a, b)
    a_us, b_us = (_present(side.wall_us if basis == "unprofiled" else side.span_us) for side in (a, b))
    recorded = change_by_cause(a.idle_by_cause(), b.idle_by_cause())
    if basis == "trace":
        idle = [WaterfallPart("idle", cause, us) for cause, us in recorded.items()]
    else:
        calibrated = change_by_cause(*(side.calibrated_idle_by_cause() or {} for side in (a, b)))
        ranges = [side.idle_ranges() for side in (a, b)]
        known = changes_between(ranges[0], ranges[1]) if ranges[0] is not None and ranges[1] is not None else {}
        idle = []
        for cause in (each for each in IDLE_CAUSES if each in calibrated or each in recorded):
            ends = (known[cause].low_us, known[cause].high_us) if cause in known else (None, None)
            us, recorded_us = calibrated.get(cause, 0.0), recorded.get(cause, 0.0)
            idle.append(WaterfallPart("idle", cause, us, recorded_us, *ends))
    if not exposed and (a.analysis.communication or b.analysis.communication):
        exposed = (WaterfallPart("communication", EXPOSED, b.exposed_us - a.exposed_us),)
    return closed_waterfall(basis, a_us, b_us, (*_gpu_parts(a, b, groups, a_us), *exposed, *idle))


def common_basis(a: Side, b: Side) -> Basis:
    """The unprofiled calls, where the idle time of both is known."""
    return "trace" if a.unprofiled_idle_us is None or b.unprofiled_idle_us is None else "unprofiled"


def closed_waterfall(basis: Basis, a_us: float, b_us: float, parts: tuple[WaterfallPart, ...]) -> Waterfall:
    """With what the parts leave of the change as its residual."""
    return Waterfall(basis, a_us, b_us, parts, b_us - a_us - math.fsum(part.delta_us for part in parts))


def _present(value: float | None) -> float:
    if value is None:
        raise AssertionError("a side with GPU figures has a span, a busy time and an idle time")
    return value


def _gpu_parts(a: Side, b: Side, groups: Sequence[KernelGroup], a_us: float) -> tuple[WaterfallPart, ...]:
    """The change of busy time, group by group. Kernels that ran side by side count once in busy time and twice in the
    groups, which the overlap correction mends; work launched outside the steps is in busy time and in no group.
    Communication counts as far as nothing else ran beside it."""
    groups = [group for group in groups if group.kind != "communication"]
    changed = sorted((group for group in groups if group.kind != "unchanged"), key=lambda group: -abs(group.delta_us))
    large = sum(abs(group.delta_us) >= SMALLEST_SHARE * a_us for group in changed[:MOST_GROUPS])
    parts = [WaterfallPart("gpu", group.label, group.delta_us) for group in changed[:large]]
    rest = {OTHER_KERNELS: changed[large:], SAME_KERNELS: [group for group in groups if group.kind == "unchanged"]}
    parts += [
        WaterfallPart("gpu", label, math.fsum(group.delta_us for group in some)) for label, some in rest.items() if some
    ]
    a_outside, b_outside = (each.analysis.gpu.outside_us / each.steps if each.analysis.gpu else 0.0 for each in (a, b))
    if a_outside or b_outside:
        parts.append(WaterfallPart("gpu", OUTSIDE, b_outside - a_outside))
    compute, in_groups = _present(b.compute_us) - _present(a.compute_us), math.fsum(group.delta_us for group in groups)
    parts.append(WaterfallPart("gpu", OVERLAP, compute - (b_outside - a_outside) - in_groups))
    return tuple(parts)


def change_by_cause(a: Mapping[str, float], b: Mapping[str, float]) -> dict[str, float]:
    return {cause: b.get(cause, 0.0) - a.get(cause, 0.0) for cause in IDLE_CAUSES if cause in a or cause in b}


def find_reason(a: Side, b: Side, verdict: Verdict, waterfall: Waterfall | None) -> Reason | None:
    """The shares of GPU work, of communication and of waiting, the larger first, and what nothing explains.

    None where no difference of unprofiled times was established, in alternation or beyond what separate runs leave
    open, for there is nothing to explain then; where the recorded process shows none of the verdict's sign; and where
    no share is larger than what GPU time is certain to.
    Waiting is the call less GPU time, so what makes the one uncertain makes the other.
    """
    if waterfall is None or waterfall.basis != "unprofiled" or not verdict.established:
        return None
    change = waterfall.b_us - waterfall.a_us
    sign = -1.0 if verdict.speedup is not None and verdict.speedup > 1 else 1.0
    # GPU time may be off by what two recordings differ by, else by what they are taken to.
    doubts = (
        BUSY_MOVES * (side.busy_us or 0.0) if side.busy_differs_us is None else side.busy_differs_us for side in (a, b)
    )
    least = max(LEAST_SHARE * abs(change), *doubts)
    kinds: tuple[PartKind, ...] = ("gpu", "communication", "idle")
    shares = [share for kind in kinds if (share := _share(kind, waterfall.parts, least)) is not None]
    if change * sign <= 0 or not any(share.delta_us * sign > 0 for share in shares):
        return None
    shares.sort(key=lambda share: -abs(share.delta_us))
    unexplained = change - math.fsum(share.delta_us for share in shares)
    is_large = abs(unexplained) >= UNEXPLAINED * abs(change)
    return Reason(change, tuple(shares), unexplained if is_large else 0.0, verdict.basis == "processes")


def _share(kind: PartKind, parts: Sequence[WaterfallPart], least_us: float) -> ReasonShare | None:
    """All parts of a kind, and those to name: the largest that went the way of their sum, and the largest GPU part that
    went the other way where that is much. None where they make no more than `least_us`."""
    own = [part for part in parts if part.kind == kind]
    delta = math.fsum(part.delta_us for part in own)
    if abs(delta) <= least_us:
        return None
    parts = sorted(_by_label([part for part in own if part.label not in REST]), key=lambda part: -abs(part.delta_us))
    # A change that may be none is no reason.
    same_way = [part for part in parts if part.has_sign and part.delta_us * delta >= NAMED_SHARE * delta**2]
    against = [part for part in parts if part.kind == "gpu" and part.delta_us * delta <= -AGAINST * delta**2]
    named = (*same_way[:MOST_NAMED], *against[:1])
    rest = delta - math.fsum(part.delta_us for part in named)
    return ReasonShare(kind, delta, named, rest if named and abs(rest) >= NAMED_SHARE * abs(delta) else 0.0)


def _by_label(parts: Sequence[WaterfallPart]) -> list[WaterfallPart]:
    """Groups of kernels of one label, which lie at several places or have several sizes, as one: what is named is then
    known by its name, and is not named twice."""
    by_label: dict[Label, list[WaterfallPart]] = {}
    for part in parts:
        label = part.label
        by_label.setdefault(label if isinstance(label, str) else replace(label, repeats=1), []).append(part)
    found: list[WaterfallPart] = []
    for label, some in by_label.items():
        if isinstance(label, GroupLabel):
            repeats = sum(each.label.repeats for each in some if isinstance(each.label, GroupLabel))
            label = replace(label, repeats=repeats)
        found.append(some[0] if len(some) == 1 else WaterfallPart("gpu", label, math.fsum(p.delta_us for p in some)))
    return found
