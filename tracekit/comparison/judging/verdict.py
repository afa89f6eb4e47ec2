"""Which side is faster? Answered from unprofiled times only; traces have no say but in what is warned of."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.comparison.judging import processes, thresholds
from tracekit.comparison.judging.disturbances import find_drift_of_ratio, find_unsteady_speeds, find_warming
from tracekit.comparison.judging.timed import Timed, calls_that_count, compilations_while_timed, rounds_that_count
from tracekit.model.comparison import Result, Verdict
from tracekit.model.estimate import Estimate, compare_estimates, exactly
from tracekit.model.note import Note
from tracekit.model.run import FormName, FormResult
from tracekit.model.timing import ControlCall
from tracekit.statements.notes import timing as statements
from tracekit.statistics.interval import (
    Interval,
    Values,
    block_length,
    interval_of_difference,
    interval_of_processes,
    odd_even_noise,
    resampled_medians,
)
from tracekit.statistics.steady import FEWEST_STRETCHES, find_tick, mean_interval, mean_ratio, without_outliers

Judged = tuple[Verdict, tuple[Note, ...]]


class Pairs(Struct, frozen=True):
    """Both sides' calls in one process, round by round, and the controls that were made between them."""

    a_us: Values
    b_us: Values
    a_controls: tuple[ControlCall, ...] = ()
    b_controls: tuple[ControlCall, ...] = ()

    @property
    def log_ratios(self) -> Values:
        return np.asarray(np.log(self.a_us / self.b_us))

    @property
    def coarse_tick(self) -> float:
        """The step of the clock as a share of the shorter call, where it is too coarse to be passed over; else 0."""
        tick = find_tick(self.a_us, self.b_us) / float(min(np.median(self.a_us), np.median(self.b_us)))
        return tick if tick > thresholds.COARSE_TICK else 0.0

    @property
    def interval(self) -> Interval:
        """Of the logarithm of the speed-up; wider by a step of a coarse clock, which no number of rounds averages
        out."""
        found, step = mean_interval(self.log_ratios), math.log1p(self.coarse_tick)
        return replace(found, low=found.low - step, high=found.high + step)

    @property
    def control_ratios(self) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
        """The logarithm of first by second call of a form in one round, with the round; of either side."""
        a, b = (
            [(each.round, math.log(us[each.round] / each.wall_us)) for each in controls if each.round < len(us)]
            for us, controls in ((self.a_us, self.a_controls), (self.b_us, self.b_controls))
        )
        return a, b


def judge(a: Timed, b: Timed, order: tuple[FormName, ...]) -> Judged:
    """The verdict, and what a reader must know of how it was reached.

    In alternation (`order` is not empty) the speed-up is the mean (of logarithms) over rounds of A's call by B's, with
    an interval by batch means; of several processes the mean of theirs, with Student's t. Not in alternation it is the
    ratio of the medians, and no verdict follows. Rounds in which a side compiled are left out of interval and
    floor, and the result is then inconclusive. Faster or slower needs an interval that leaves 1 out, a change beyond
    the noise floor and beyond what is small; of one process with fewer than ten independent rounds it is
    what processes differ by that leaves 1 out (`decided95`, docs/timing.md).
    """
    if not (a.form and b.form and a.form.wall_us and b.form.wall_us):
        return Verdict("not_timed"), (statements.NotTimed(),)
    recompiled = tuple(
        statements.CompiledWhileTimed(side.label, count) for side in (a, b) if (count := compilations_while_timed(side))
    )
    if not order:
        verdict, notes = _judge_separate_runs(a, b)
        return verdict, (*notes, *recompiled)

    ends = (float(np.median(a.form.steady_us)), float(np.median(b.form.steady_us)))
    every = _pairs_of_processes(a.form, b.form, rounds_that_count(a, b))
    rounds = min(len(a.form.wall_us), len(b.form.wall_us))
    uneven = () if len(a.form.wall_us) == len(b.form.wall_us) else (statements.UnevenCalls(rounds),)
    count = len(every[0].a_us)
    if count < thresholds.FEWEST_CALLS:
        speedup = mean_ratio(every[0].a_us, every[0].b_us)
        verdict = Verdict("inconclusive", speedup, None, None, *ends, n=count, basis="rounds")
        repeats = len(a.form.timing.processes) if a.form.timing else 0
        few_calls = statements.TooFewCalls(count, thresholds.FEWEST_CALLS, repeats, of_program=_of_program(b))
        return verdict, (*uneven, few_calls, *recompiled)

    verdict, limits = _judge_pairs(every, ends, (a, b), withheld=bool(recompiled))
    unsteady = [*find_warming(b), *find_unsteady_speeds(a, b)]
    if len(every) == 1:
        # Thirds of one process are no part of what the interval of several is of.
        unsteady += find_drift_of_ratio(every[0].a_us, every[0].b_us, verdict.ci95 or (0.0, math.inf))
    spread = (*processes.find_process_spread(a), *processes.find_process_spread(b))
    return verdict, (*uneven, *recompiled, *limits, *unsteady, *spread)


def speedup_of(verdict: Verdict) -> Estimate | None:
    """The verdict's speed-up with its interval; None where it has none."""
    if verdict.speedup is None or verdict.ci95 is None:
        return None
    return Estimate(verdict.speedup, *verdict.ci95, basis="processes" if verdict.basis == "processes" else "calls")


def find_noise_floor(every: Sequence[Pairs]) -> float:
    """How far a form seems to differ from itself: 0.01 is 1 %. The largest floor of any process, and of either form.

    The A/A control: both calls of one form in one round, compared as the sides are; what comes back is the 95th
    percentile of |ratio - 1| over block bootstrap resamples. In each process those of both forms together, one pair for
    two rounds; and of each form those of all processes, where there are enough. So it errs on the side of a higher
    floor. Without enough controls (few rounds) the odd and even calls of each form are compared.
    """
    floors = []
    by_form: tuple[list[float], list[float]] = ([], [])
    for pairs in every:
        for ratios, control_ratios in zip(by_form, pairs.control_ratios, strict=True):
            ratios.extend(ratio for _, ratio in control_ratios)
        both = sorted([*pairs.control_ratios[0], *pairs.control_ratios[1]])
        if len(both) < thresholds.FEWEST_CALLS:
            floors += [odd_even_noise(pairs.a_us), odd_even_noise(pairs.b_us)]
        else:
            floors.append(_noise_of([ratio for _, ratio in both]))
    return max((*floors, *(_noise_of(ratios) for ratios in by_form if len(ratios) >= thresholds.FEWEST_PAIRS)))


def _noise_of(ratios: list[float]) -> float:
    controls = np.array(ratios)
    medians = resampled_medians(controls, block_length(controls))
    return float(np.percentile(np.expm1(np.abs(medians)), 95))


def _judge_separate_runs(a: Timed, b: Timed) -> Judged:
    """A ratio with an interval that holds if nothing else changed, and no verdict.

    Where a run was timed in several processes, it is the ratio of the means (of logarithms) of their medians, with an
    interval that knows how they differ. Calls that compiled are left out.
    """
    calls = tuple(calls_that_count(side) for side in (a, b))
    a_us, b_us = (float(np.median(side.form.steady_us if side.form else ())) for side in (a, b))
    fewest = min(map(len, calls))
    if fewest < thresholds.FEWEST_CALLS:
        verdict = Verdict("inconclusive", a_us / b_us, None, None, a_us, b_us, n=fewest, basis="apart")
        return verdict, (statements.NotAlternated(), statements.TooFewCalls(fewest, thresholds.FEWEST_CALLS, 0))
    of_a, of_b = processes.process_medians(a), processes.process_medians(b)
    interval = interval_of_difference(of_a, of_b)
    a_us, b_us = processes.typical_call_us(a, of_a), processes.typical_call_us(b, of_b)
    verdict = Verdict(
        "inconclusive",
        *_speedup(interval),
        max(map(odd_even_noise, calls)),
        a_us,
        b_us,
        n=min(sum(map(len, processes.processes_of(side))) for side in (a, b)),
        processes=min(len(of_a), len(of_b)),
        basis="apart",
        block=interval.block,
    )
    return verdict, (statements.NotAlternated(), *find_warming(a, b))


def _judge_pairs(
    every: tuple[Pairs, ...], ends: tuple[float, float], sides: tuple[Timed, Timed], *, withheld: bool
) -> Judged:
    """The verdict on both sides' calls in the same rounds, and notes where these or the clock tell too little. `ends`
    are the sides' medians in the run's own process."""
    within = tuple(pairs.interval for pairs in every)
    single = len(every) == 1
    interval = within[0] if single else interval_of_processes(within)
    if not single:
        # The mean (of logarithms) over the processes, as the speed-up is.
        medians = np.log([(np.median(pairs.a_us), np.median(pairs.b_us)) for pairs in every])
        a_us, b_us = np.exp(medians.mean(axis=0))
        ends = float(a_us), float(b_us)
    speedup, ci95 = _speedup(interval)
    ratios = [math.exp(each.middle) for each in within]
    noise, several = find_noise_floor(every), len(every) >= thresholds.ENOUGH_PROCESSES
    least = thresholds.LEAST_IN_SEVERAL if several else thresholds.LEAST_IN_ONE_PROCESS
    # Of several processes the reason of one that did not reach its target, where there is one.
    timing = sides[1].form.timing if sides[1].form else None
    stops = [timing.stopped, *(each.stopped for each in timing.processes)] if timing else []
    verdict = Verdict(
        "inconclusive",
        speedup,
        ci95,
        noise,
        *ends,
        n=sum(len(pairs.a_us) for pairs in every),
        processes=len(every),
        basis="rounds" if single else "processes",
        least_change=least,
        block=interval.block,
        stopped=next((each for each in stops if each != "target reached"), "target reached") if stops else None,
        process_range=None if single else (min(ratios), max(ratios)),
        stretches=within[0].stretches if single else None,
    )
    few = verdict.stretches is not None and verdict.stretches < FEWEST_STRETCHES
    if not withheld:
        ranged = processes.next_process95(*sides, verdict)
        # What lasts as long as a process does, no number of its rounds averages out: then what processes differ by
        # decides, as of works that wait for the host where nobody measured it.
        decided = (ranged or processes.next_speedup95(speedup, ci95, 1, (None,))) if few else None
        order = compare_estimates(Estimate(speedup, *(decided or ci95)), exactly(1.0), max(noise, least))
        result: Result = "faster" if order == "larger" else "slower" if order == "smaller" else "inconclusive"
        verdict = replace(verdict, result=result, next_process95=ranged, decided95=decided)
    tick = max(pairs.coarse_tick for pairs in every)
    notes: list[Note] = [statements.CoarseClock(tick)] if tick else []
    if few and verdict.stretches is not None:
        count, of_program = len(every[0].a_us), _of_program(sides[1])
        notes.append(statements.FewStretches(count, verdict.stretches, FEWEST_STRETCHES, of_program=of_program))
    notes += _find_outliers(every)
    notes += processes.find_two_kinds(ratios)
    return verdict, tuple(notes)


def _of_program(side: Timed) -> bool:
    return bool(side.settings and side.settings.is_of_program)


def _find_outliers(every: tuple[Pairs, ...]) -> list[Note]:
    """A note where so many rounds are no part of the mean that they may be a part of the work, with the speed-up of all
    rounds, if that is another."""
    logs = [pairs.log_ratios for pairs in every]
    rounds = sum(map(len, logs))
    left_out = rounds - sum(len(without_outliers(each)) for each in logs)
    with_all = float(np.mean([each.mean() for each in logs]))
    moved = abs(with_all - float(np.mean([without_outliers(each).mean() for each in logs])))
    if left_out < thresholds.MANY_OUTLIERS * rounds or moved < math.log1p(thresholds.LEAST_IN_SEVERAL):
        return []
    return [statements.Outliers(left_out, rounds, math.exp(with_all))]


def _speedup(interval: Interval) -> tuple[float, tuple[float, float]]:
    """Of the logarithm's interval."""
    return math.exp(interval.middle), (math.exp(interval.low), math.exp(interval.high))


def _pairs_of_processes(a: FormResult, b: FormResult, rounds: list[int]) -> tuple[Pairs, ...]:
    """The run's own process, of which these rounds count, and those that repeated it and made enough calls."""
    controls = (form.timing.controls if form.timing else () for form in (a, b))
    every = [_pairs((a.wall_us, b.wall_us), controls, rounds)]
    repeats = zip(a.timing.processes, b.timing.processes, strict=False) if a.timing and b.timing else ()
    for one, other in repeats:
        made = range(max(one.unsteady, other.unsteady), min(len(one.wall_us), len(other.wall_us)))
        if len(made) >= thresholds.FEWEST_CALLS:
            every.append(_pairs((one.wall_us, other.wall_us), (one.controls, other.controls), made))
    return tuple(every)


def _pairs(
    walls: tuple[Sequence[float], Sequence[float]],
    controls: Iterable[Sequence[ControlCall]],
    rounds: Sequence[int],
) -> Pairs:
    """Of these rounds alone, which are counted anew."""
    places = {round_: place for place, round_ in enumerate(rounds)}
    a_us, b_us = (np.asarray(us)[list(rounds)] for us in walls)
    a_controls, b_controls = (
        tuple(replace(each, round=places[each.round]) for each in some if each.round in places) for some in controls
    )
    return Pairs(a_us, b_us, a_controls, b_controls)
