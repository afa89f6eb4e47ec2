"""Where did the time go? A's wall, plus the change of every part, plus the residual, is B's wall."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.comparison import Basis, KernelGroup, Side, Waterfall, WaterfallPart, comparable

#: At most this many kernel groups have a part of their own, and only those that change the wall by this share.
MOST_GROUPS = 8
SMALLEST_SHARE = 0.005

OTHER_KERNELS = "other_gpu_work"
#: Kernels of the same name and count differ by clocks and caches only, so together they make one part.
SAME_KERNELS = "unchanged_kernels"
OVERLAP = "overlap_correction"
OUTSIDE = "outside_steps"


def build_waterfall(a: Side, b: Side, groups: Sequence[KernelGroup]) -> Waterfall | None:
    """None when a side has no figures of one GPU (idle time of several does not add up to wall time), and when one was
    read per step and the other whole.

    The ends are the unprofiled median walls where both sides have them and their recordings were read by steps; idle
    parts are then without what recording added to each side (`Side.calibrated_idle_by_cause`), and idle time that a
    recording does not show is in the residual. Else the ends are the recorded windows, and idle parts as recorded.
    """
    if len(a.analysis.devices) != 1 or len(b.analysis.devices) != 1 or not (a.analysis.gpu and b.analysis.gpu):
        return None
    if not comparable(a, b):
        return None
    basis: Basis = "trace" if a.unprofiled_idle_us is None or b.unprofiled_idle_us is None else "unprofiled"
    a_us, b_us = (_present(side.wall_us if basis == "unprofiled" else side.span_us) for side in (a, b))
    parts = (*_gpu_parts(a, b, groups, a_us), *_idle_parts(a, b, basis))
    residual = b_us - a_us - math.fsum(part.delta_us for part in parts)
    return Waterfall(basis=basis, a_us=a_us, b_us=b_us, parts=parts, residual_us=residual)


def _present(value: float | None) -> float:
    if value is None:
        raise AssertionError("a side with GPU figures has a span, a busy time and an idle time")
    return value


def _gpu_parts(a: Side, b: Side, groups: Sequence[KernelGroup], a_us: float) -> tuple[WaterfallPart, ...]:
    """The change of busy time, group by group. Kernels that ran side by side count once in busy time and twice in the
    groups, which the overlap correction mends; work launched outside the steps is in busy time and in no group."""
    changed = sorted((group for group in groups if group.kind != "unchanged"), key=lambda group: -abs(group.delta_us))
    large = sum(abs(group.delta_us) >= SMALLEST_SHARE * a_us for group in changed[:MOST_GROUPS])
    parts = [WaterfallPart("gpu", group.label, group.delta_us) for group in changed[:large]]
    rest = {
        OTHER_KERNELS: changed[large:],
        SAME_KERNELS: [group for group in groups if group.kind == "unchanged"],
    }
    parts += [
        WaterfallPart("gpu", label, math.fsum(group.delta_us for group in some)) for label, some in rest.items() if some
    ]
    busy = _present(b.busy_us) - _present(a.busy_us)
    outside = _outside(b) - _outside(a)
    overlap = busy - outside - math.fsum(group.delta_us for group in groups)
    parts += [WaterfallPart("gpu", OUTSIDE, outside)] if _outside(a) or _outside(b) else []
    return (*parts, WaterfallPart("gpu", OVERLAP, overlap))


def _outside(side: Side) -> float:
    return side.analysis.gpu.outside_us / side.steps if side.analysis.gpu else 0.0


def _idle_parts(a: Side, b: Side, basis: Basis) -> tuple[WaterfallPart, ...]:
    recorded = _change_by_cause(a.idle_by_cause(), b.idle_by_cause())
    if basis == "trace":
        return tuple(WaterfallPart("idle", cause, us) for cause, us in recorded.items())
    calibrated = _change_by_cause(*(side.calibrated_idle_by_cause() or {} for side in (a, b)))
    return tuple(WaterfallPart("idle", cause, calibrated[cause], us) for cause, us in recorded.items())


def _change_by_cause(a: Mapping[str, float], b: Mapping[str, float]) -> dict[str, float]:
    return {cause: b.get(cause, 0.0) - a.get(cause, 0.0) for cause in IDLE_CAUSES if cause in a or cause in b}
