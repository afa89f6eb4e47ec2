"""How much of a call an idle time that was recorded can be worth."""

from __future__ import annotations

from tracekit.model.analysis import SyncTime
from tracekit.model.comparison import Side


def idle_saving(side: Side, recorded_us: float) -> float:
    """What doing without so much recorded idle time (per step, microseconds, all GPUs) saves of a call at most.

    Recording lengthens idle time: where the unprofiled call has less of it in all, the part shrinks with the whole.
    Idle time of several GPUs is taken for that of one on average. It is never more than the call.
    """
    saving = recorded_us / max(len(side.analysis.devices), 1)
    true_us, whole_us = side.unprofiled_idle_us, side.recorded_idle_us
    if true_us is not None and whole_us:
        saving = min(saving * min(true_us / whole_us, 1.0), true_us)
    call_us = side.wall_us or side.span_us
    return saving if call_us is None else min(saving, call_us)


def exposing(side: Side) -> list[SyncTime]:
    """The synchronising calls of the light recording behind which the GPU ran dry."""
    idle = side.analysis.idle
    return [sync for sync in idle.syncs if sync.drained and sync.idle_after_us > 0] if idle else []
