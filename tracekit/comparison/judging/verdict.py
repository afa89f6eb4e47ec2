"""Which side is faster? Answered from unprofiled times only; traces have no say but in what is warned of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracekit.comparison.judging.compiling_calls import compilations_while_timed, without_compiling
from tracekit.comparison.judging.one_process import ENOUGH_PROCESSES, find_unrepeated
from tracekit.comparison.judging.process_spread import find_other_speeds
from tracekit.comparison.judging.separate_runs import FEWEST_CALLS, halves_floor, judge_apart, too_few_calls
from tracekit.comparison.judging.steadiness import find_restlessness, tell_thirds, unshared_change
from tracekit.comparison.judging.timed import Timed
from tracekit.model.comparison import Verdict, VerdictBasis
from tracekit.model.note import Note
from tracekit.model.run import FormName, FormResult
from tracekit.model.timing import ControlCall, StopReason
from tracekit.statistics.blocks import block_length
from tracekit.statistics.interval import (
    Interval,
    interval_of_processes,
    median_interval,
    resampled_medians,
)

#: A smaller change than this is not called one, however sure it is: another start of the program differs by as much.
LEAST_IN_ONE_PROCESS = 0.02
#: The same where that was measured in several processes.
LEAST_IN_SEVERAL = 0.01
#: Of fewer control pairs one form has no floor of its own: that of five is nearly their largest difference.
FEWEST_PAIRS = 10

Result = Literal["faster", "slower", "inconclusive"]
Times = NDArray[np.float64]

NOT_TIMED = Verdict("not_timed", None, None, None, None, None)


@dataclass(frozen=True)
class Pairs:
    """Both sides' calls in one process, round by round, and the controls that were made between them."""

    a_us: Times
    b_us: Times
    a_controls: tuple[ControlCall, ...] = ()
    b_controls: tuple[ControlCall, ...] = ()

    @property
    def log_ratios(self) -> Times:
        return np.asarray(np.log(self.a_us / self.b_us))


def judge(a: Timed, b: Timed, order: tuple[FormName, ...]) -> tuple[Verdict, tuple[Note, ...]]:
    """The verdict, and what a reader must know of how it was reached.

    In alternation (`order` is not empty) the speed-up is the median over rounds of A's call by B's, with a block
    bootstrap interval; of several processes the mean of their medians, with Student's t. Not in alternation it is the
    ratio of the medians, and no verdict follows. Rounds in which a side compiled are left out of interval and
    floor, and the result is then inconclusive. Faster or slower needs an interval that leaves 1 out and a change beyond
    the noise floor and beyond what is small (docs/timing.md).
    """
    if not (a.form and b.form and a.form.wall_us and b.form.wall_us):
        return NOT_TIMED, (Note("not_timed"),)
    ends = (float(np.median(a.form.wall_us)), float(np.median(b.form.wall_us)))
    own = without_compiling(a, b, np.asarray(a.form.wall_us), np.asarray(b.form.wall_us))
    recompiled = _recompiled(a, b)
    if not order:
        verdict, notes = judge_apart(a, b, ends)
        return verdict, (*notes, *recompiled)
    every = _every_process(a.form, b.form, own)
    uneven = _uneven(a.form, b.form)
    if len(every[0].a_us) < FEWEST_CALLS:
        few = too_few_calls(len(every[0].a_us), len(a.form.timing.processes) if a.form.timing else 0)
        speedup = math.exp(float(np.median(every[0].log_ratios)))
        verdict = Verdict("inconclusive", speedup, None, None, *ends, n=len(every[0].a_us), basis="rounds")
        return verdict, (*uneven, few, *recompiled)
    if len(every) > 1:
        ends = _typical_ends(every)
    verdict = _judge_together(every, ends, withheld=bool(recompiled))
    verdict = replace(verdict, stopped=_stopped(b.form))
    restless = (*find_restlessness(a, b), *tell_thirds(every[0].a_us, every[0].b_us), *_unshared(every))
    spread = (*find_other_speeds(a), *find_other_speeds(b))
    return verdict, (*uneven, *recompiled, *restless, *spread, *find_unrepeated(a, b, verdict))


def _typical_ends(every: tuple[Pairs, ...]) -> tuple[float, float]:
    """What a call takes in all processes together: the mean (of logarithms) of their medians, as the speed-up is."""
    logs = np.log([(np.median(pairs.a_us), np.median(pairs.b_us)) for pairs in every])
    a_us, b_us = np.exp(logs.mean(axis=0))
    return float(a_us), float(b_us)


def _stopped(form: FormResult) -> StopReason | None:
    """Why timing stopped; of several processes the reason of one that did not reach its target, where there is one."""
    if form.timing is None:
        return None
    reasons = (form.timing.stopped, *(each.stopped for each in form.timing.processes))
    return next((each for each in reasons if each != "target reached"), "target reached")


def _unshared(every: tuple[Pairs, ...]) -> tuple[Note, ...]:
    """Where one form changed its speed by itself so far that this decides what counts as a change."""
    changes = [unshared_change(pairs.a_us, pairs.b_us) for pairs in every]
    largest = max(changes)
    if largest <= _least_change(every):
        return ()
    repeat = changes.index(largest) if len(every) > 1 else None
    return (Note("ratio_changed", facts={"share": largest, "repeat": repeat}),)


def _least_change(every: tuple[Pairs, ...]) -> float:
    return LEAST_IN_SEVERAL if len(every) >= ENOUGH_PROCESSES else LEAST_IN_ONE_PROCESS


def _judge_together(every: tuple[Pairs, ...], ends: tuple[float, float], *, withheld: bool) -> Verdict:
    within = tuple(median_interval(pairs.log_ratios) for pairs in every)
    interval = within[0] if len(within) == 1 else interval_of_processes(within)
    noise = find_noise_floor(every)
    speedup, ci95 = math.exp(interval.middle), (math.exp(interval.low), math.exp(interval.high))
    least = max(_least_change(every), *(unshared_change(pairs.a_us, pairs.b_us) for pairs in every))
    basis: VerdictBasis = "rounds" if len(every) == 1 else "processes"
    return Verdict(
        "inconclusive" if withheld else _decide(interval, max(noise, least)),
        speedup,
        ci95,
        noise,
        *ends,
        n=sum(len(pairs.a_us) for pairs in every),
        processes=len(every),
        basis=basis,
        least_change=least,
        block=interval.block,
    )


def _every_process(a: FormResult, b: FormResult, times: tuple[Times, Times]) -> tuple[Pairs, ...]:
    """The run's own process, whose calls that count are `times`, and those that repeated it and made enough calls."""
    rounds = min(len(times[0]), len(times[1]))
    whole = len(times[0]) == len(a.wall_us)
    # Controls are known by the number of their round, which says nothing where rounds are left out.
    controls = ((form.timing.controls if form.timing and whole else ()) for form in (a, b))
    own = Pairs(times[0][:rounds], times[1][:rounds], *controls)
    if not (a.timing and b.timing):
        return (own,)
    repeats = []
    for one, other in zip(a.timing.processes, b.timing.processes, strict=False):
        rounds = min(len(one.wall_us), len(other.wall_us))
        if rounds >= FEWEST_CALLS:
            a_us, b_us = np.asarray(one.wall_us[:rounds]), np.asarray(other.wall_us[:rounds])
            repeats.append(Pairs(a_us, b_us, one.controls, other.controls))
    return (own, *repeats)


def _uneven(a: FormResult, b: FormResult) -> tuple[Note, ...]:
    if len(a.wall_us) == len(b.wall_us):
        return ()
    rounds = min(len(a.wall_us), len(b.wall_us))
    return (Note("uneven_calls", facts={"rounds": rounds}),)


def _recompiled(a: Timed, b: Timed) -> tuple[Note, ...]:
    return tuple(
        Note("compiled_while_timed", subject=side.label, facts={"compilations": count})
        for side in (a, b)
        if (count := compilations_while_timed(side))
    )


def _decide(interval: Interval, least: float) -> Result:
    if interval.low > 0 and interval.middle > math.log1p(least):
        return "faster"
    if interval.high < 0 and -interval.middle > math.log1p(least):
        return "slower"
    return "inconclusive"


def find_noise_floor(every: Sequence[Pairs]) -> float:
    """How far a form seems to differ from itself: 0.01 is 1 %. The largest floor of any process, and of either form.

    The A/A control: both calls of one form in one round, compared as the sides are; what comes back is the 95th
    percentile of |ratio - 1| over block bootstrap resamples. In each process those of both forms together, one pair for
    two rounds; and of each form those of all processes, where there are enough. So it errs on the side of a higher
    floor. Without controls (runs of older versions, few rounds) the odd and even calls of each form are compared.
    """
    by_form = (
        [ratio for pairs in every for _, ratio in _control_ratios(pairs.a_us, pairs.a_controls)],
        [ratio for pairs in every for _, ratio in _control_ratios(pairs.b_us, pairs.b_controls)],
    )
    of_forms = [_floor_of(ratios) for ratios in by_form if len(ratios) >= FEWEST_PAIRS]
    return max((*map(_floor, every), *of_forms))


def _floor(pairs: Pairs) -> float:
    both = (*_control_ratios(pairs.a_us, pairs.a_controls), *_control_ratios(pairs.b_us, pairs.b_controls))
    if len(both) < FEWEST_CALLS:
        return max(halves_floor(pairs.a_us), halves_floor(pairs.b_us))
    return _floor_of([ratio for _, ratio in sorted(both)])


def _floor_of(ratios: list[float]) -> float:
    controls = np.array(ratios)
    medians = resampled_medians(controls, block_length(controls))
    return float(np.percentile(np.expm1(np.abs(medians)), 95))


def _control_ratios(wall_us: Times, controls: Sequence[ControlCall]) -> list[tuple[int, float]]:
    """The logarithm of first by second call of a form in one round, with the round."""
    return [
        (control.round, math.log(wall_us[control.round] / control.wall_us))
        for control in controls
        if control.round < len(wall_us)
    ]
