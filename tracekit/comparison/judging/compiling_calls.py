"""Which timed calls compiled, and what did that cost?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracekit.comparison.judging.timed import Timed
from tracekit.model.compilation import CompilingCall, FrameCompilation

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CompilingCost:
    """A timed call that compiled, what of it, and how much longer it took than the median call that did not; None where
    none did not, or the call's time is not known."""

    call: CompilingCall
    frames: tuple[FrameCompilation, ...]
    extra_us: float | None


def find_compiling_costs(side: Timed) -> tuple[CompilingCost, ...]:
    """The timed calls of the side that compiled, in order; empty where nobody asked torch."""
    found, form = side.diagnostics, side.form
    if found is None or form is None:
        return ()
    calls = found.timed_calls()
    numbers = {call.call for call in calls}
    others = [us for number, us in enumerate(form.wall_us, 1) if number not in numbers]
    usual = float(np.median(others)) if others else None
    return tuple(
        CompilingCost(
            call,
            found.frames_of(call),
            call.wall_us - usual if call.wall_us is not None and usual is not None else None,
        )
        for call in calls
    )


def compilations_while_timed(side: Timed) -> int:
    """How much was compiled inside timed calls, of the run's own process and of those that repeated it."""
    return side.form.compilations_while_timed if side.form else 0


def calls_that_count(side: Timed) -> Times:
    """The side's timed calls, in microseconds, without those that compiled; all of them where no other was made."""
    wall_us = np.asarray(side.form.wall_us if side.form else ())
    compiling = {cost.call.call - 1 for cost in find_compiling_costs(side)}
    kept = [number for number in range(len(wall_us)) if number not in compiling]
    return wall_us[kept] if kept else wall_us


def without_compiling(a: Timed, b: Timed, a_us: Times, b_us: Times) -> tuple[Times, Times]:
    """The times of both sides without the rounds in which either compiled; as they are where no round would be left, or
    the sides have not as many calls."""
    compiling = {cost.call.call - 1 for side in (a, b) for cost in find_compiling_costs(side)}
    kept = [number for number in range(len(a_us)) if number not in compiling]
    if not compiling or len(a_us) != len(b_us) or not kept:
        return a_us, b_us
    return a_us[kept], b_us[kept]
