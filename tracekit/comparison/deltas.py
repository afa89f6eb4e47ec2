"""How many kernels, launches and microseconds more or fewer B has than A, per step."""

from __future__ import annotations

from tracekit.model.comparison import Deltas, Side, comparable


def measure_deltas(a: Side, b: Side) -> Deltas:
    """Idle is the unprofiled wall's where both sides have one, else the recording's: what the waterfall uses too."""
    if not comparable(a, b):
        return Deltas(None, None, None, None)
    idle = _delta(a.unprofiled_idle_us, b.unprofiled_idle_us)
    if idle is None:
        idle = _delta(a.recorded_idle_us, b.recorded_idle_us)
    return Deltas(
        kernels=_delta(a.kernels_per_step, b.kernels_per_step),
        launches=_delta(a.launches_per_step, b.launches_per_step),
        busy_us=_delta(a.busy_us, b.busy_us),
        idle_us=idle,
    )


def _delta(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else b - a
