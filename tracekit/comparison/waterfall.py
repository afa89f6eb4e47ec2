"""Where did the time go? A's wall, plus the change of every part, plus the residual, is B's wall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from tracekit.comparison import per_step
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.comparison import KernelGroup, Side, Waterfall, WaterfallPart

#: At most this many kernel groups have a part of their own, and only those that change the wall by this share.
MOST_GROUPS = 8
SMALLEST_SHARE = 0.005

OTHER_KERNELS = "other kernels"
OVERLAP = "overlap correction"


def build_waterfall(a: Side, b: Side, groups: Sequence[KernelGroup]) -> Waterfall | None:
    """None when a side has no figures of one GPU: idle time of several does not add up to wall time.

    The ends are the unprofiled median walls where both sides have them. Idle is then what the GPU did not work in of
    that wall, divided among causes as the recording divides its own idle time, less the profiler's own share. Else the
    ends are the recorded windows, and idle time is as recorded.
    """
    if len(a.analysis.devices) != 1 or len(b.analysis.devices) != 1 or not (a.analysis.gpu and b.analysis.gpu):
        return None
    a_wall, b_wall = per_step.median_wall_us(a), per_step.median_wall_us(b)
    basis: Literal["unprofiled", "trace"] = "trace"
    if a_wall is not None and b_wall is not None:
        basis, a_us, b_us = "unprofiled", a_wall, b_wall
    else:
        a_us, b_us = _present(per_step.span_us(a)), _present(per_step.span_us(b))
    parts = (*_gpu_parts(a, b, groups, a_us), *_idle_parts(a, b, basis))
    residual = b_us - a_us - math.fsum(part.delta_us for part in parts)
    return Waterfall(basis=basis, a_us=a_us, b_us=b_us, parts=parts, residual_us=residual)


def _present(value: float | None) -> float:
    if value is None:
        raise AssertionError("a side with GPU figures has a span, a busy time and an idle time")
    return value


def _gpu_parts(a: Side, b: Side, groups: Sequence[KernelGroup], a_us: float) -> tuple[WaterfallPart, ...]:
    """The change of busy time, group by group. Kernels that ran side by side count once in busy time and twice in the
    groups, which the overlap correction mends."""
    by_change = sorted(groups, key=lambda group: -abs(group.delta_us))
    shown = [group for group in by_change[:MOST_GROUPS] if abs(group.delta_us) >= SMALLEST_SHARE * a_us]
    parts = [WaterfallPart("gpu", group.label, group.delta_us) for group in shown]
    rest = [group.delta_us for group in by_change if group not in shown]
    if rest:
        parts.append(WaterfallPart("gpu", OTHER_KERNELS, math.fsum(rest)))
    busy = _present(per_step.busy_us(b)) - _present(per_step.busy_us(a))
    overlap = busy - math.fsum(group.delta_us for group in groups)
    return (*parts, WaterfallPart("gpu", OVERLAP, overlap))


def _idle_parts(a: Side, b: Side, basis: str) -> tuple[WaterfallPart, ...]:
    a_causes, b_causes = idle_by_cause(a, basis), idle_by_cause(b, basis)
    return tuple(
        WaterfallPart("idle", cause, b_causes.get(cause, 0.0) - a_causes.get(cause, 0.0))
        for cause in IDLE_CAUSES
        if cause in a_causes or cause in b_causes
    )


def idle_by_cause(side: Side, basis: str) -> dict[str, float]:
    """Idle time per step by cause, in microseconds; on the unprofiled basis the causes add up to the true idle time."""
    idle = side.analysis.idle
    recorded = {each.cause: each.us / side.steps for each in idle.causes if each.us} if idle else {}
    if basis == "trace":
        return recorded
    whole = _present(per_step.true_idle_us(side))
    recorded.pop("profiler", None)
    total = math.fsum(recorded.values())
    if not total:
        return {"unattributed": whole} if whole else {}
    return {cause: us / total * whole for cause, us in recorded.items()}
