"""Where did the time go? A's wall, plus the change of every part, plus the residual, is B's wall."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.comparison import Basis, KernelGroup, Side, Waterfall, WaterfallPart, comparable

#: At most this many kernel groups have a part of their own, and only those that change the wall by this share.
MOST_GROUPS = 8
SMALLEST_SHARE = 0.005

OTHER_KERNELS = "other GPU work"
#: Kernels of the same name and count differ by clocks and caches only, so together they make one part.
SAME_KERNELS = "unchanged kernels"
OVERLAP = "overlap correction"
OUTSIDE = "work launched outside the steps"
#: Not a cause of idle time, but what of the idle parts is the recording's doing.
RECORDING = "recording"


def build_waterfall(a: Side, b: Side, groups: Sequence[KernelGroup]) -> Waterfall | None:
    """None when a side has no figures of one GPU (idle time of several does not add up to wall time), and when one was
    read per step and the other whole.

    The ends are the unprofiled median walls where both sides have them and their recordings were read by steps. Idle
    parts are the changes of what was recorded. Recording lengthens idle time, by how much is measured, by which causes
    of it nobody can say: where it did so by more on one side than on the other, a part of its own takes that back. Else
    the ends are the recorded windows. What is left is the residual.
    """
    if len(a.analysis.devices) != 1 or len(b.analysis.devices) != 1 or not (a.analysis.gpu and b.analysis.gpu):
        return None
    if not comparable(a, b):
        return None
    basis: Basis = "trace" if a.unprofiled_idle_us is None or b.unprofiled_idle_us is None else "unprofiled"
    a_us, b_us = (_present(side.wall_us if basis == "unprofiled" else side.span_us) for side in (a, b))
    parts = (*_gpu_parts(a, b, groups, a_us), *_idle_parts(a, b), *(_recording(a, b) if basis == "unprofiled" else ()))
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


def _recording(a: Side, b: Side) -> tuple[WaterfallPart, ...]:
    """What recording added to A's idle time less what it added to B's: the idle parts hold it, the calls do not. Where
    a recording shows less idle time than the calls have, it added nothing, and nobody knows what is missing."""
    added_to_a, added_to_b = (max(side.lengthened_idle_us or 0.0, 0.0) for side in (a, b))
    return (WaterfallPart("idle", RECORDING, added_to_a - added_to_b),) if added_to_a or added_to_b else ()


def _outside(side: Side) -> float:
    return side.analysis.gpu.outside_us / side.steps if side.analysis.gpu else 0.0


def _idle_parts(a: Side, b: Side) -> tuple[WaterfallPart, ...]:
    a_causes, b_causes = a.idle_by_cause(), b.idle_by_cause()
    return tuple(
        WaterfallPart("idle", cause, b_causes.get(cause, 0.0) - a_causes.get(cause, 0.0))
        for cause in IDLE_CAUSES
        if cause in a_causes or cause in b_causes
    )
