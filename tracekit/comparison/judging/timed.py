"""What judging asks of a side: its form, how it was timed, which calls compiled; of traces idle time alone."""

from statistics import median

import numpy as np
from msgspec import Struct

from tracekit.model.comparison import Side
from tracekit.model.compilation import CompilingCall, Diagnostics, FrameCompilation
from tracekit.model.run import FormResult
from tracekit.statistics.interval import Values


class TimedForm(Struct, frozen=True):
    """A form that was timed and never recorded, beside a side of a comparison."""

    label: str
    form: FormResult

    @property
    def wall_us(self) -> float | None:
        """The median unprofiled call; None when there was none."""
        return median(self.form.steady_us) if self.form.wall_us else None

    @property
    def settings(self) -> None:
        """They are of a run."""
        return None

    @property
    def idle_share(self) -> None:
        """Only a recording tells how long the GPU was idle."""
        return None

    @property
    def diagnostics(self) -> Diagnostics | None:
        """What torch.compile said while the form was run; None where nobody asked."""
        return self.form.compilation.diagnostics if self.form.compilation else None


Timed = Side | TimedForm


class CompilingCost(Struct, frozen=True):
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
    calls, compiling = found.timed_calls(), _compiling(side)
    usual = float(np.median(calls_that_count(side))) if _without(len(form.wall_us), compiling) else None
    return tuple(
        CompilingCost(
            call,
            tuple(each for each in found.frames if (each.phase, each.call) == (call.phase, call.call)),
            call.wall_us - usual if call.wall_us is not None and usual is not None else None,
        )
        for call in calls
    )


def compilations_while_timed(side: Timed) -> int:
    """How much was compiled inside timed calls, of the run's own process and of those that repeated it."""
    return side.form.compilations_while_timed if side.form else 0


def calls_that_count(side: Timed) -> Values:
    """The side's timed calls, in microseconds, without those that compiled or had not settled; all of them where no
    other was made."""
    wall_us = np.asarray(side.form.wall_us if side.form else ())
    kept = _without(len(wall_us), _compiling(side) | set(range(_unsteady(side))))
    return wall_us[kept] if kept else wall_us


def rounds_that_count(a: Timed, b: Timed) -> list[int]:
    """The rounds, from 0, in which both sides were called, neither compiled and both had settled; all of them where no
    round would be left."""
    rounds = min(len(side.form.wall_us) if side.form else 0 for side in (a, b))
    left_out = _compiling(a) | _compiling(b) | set(range(max(map(_unsteady, (a, b)))))
    return _without(rounds, left_out) or list(range(rounds))


def _unsteady(side: Timed) -> int:
    timing = side.form.timing if side.form else None
    return timing.unsteady if timing else 0


def _compiling(side: Timed) -> set[int]:
    """The positions of the timed calls that compiled, on any rank."""
    found, form = side.diagnostics if side.form else None, side.form
    own = {call.call - 1 for call in found.timed_calls()} if found else set()
    ranks = side.ranks if isinstance(side, Side) else ()
    others = (each for rank in ranks for each in rank.forms if form and each.name == form.name)
    return own | {call - 1 for each in others for call in each.compiling_calls}


def _without(calls: int, compiling: set[int]) -> list[int]:
    return [at for at in range(calls) if at not in compiling]
