"""Which side is faster? Answered from unprofiled times only; traces have no say but in what is warned of."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.comparison.judging import thresholds
from tracekit.comparison.judging.disturbances import find_drift_of_ratio, find_unsteady_speeds, ratio_change
from tracekit.comparison.judging.processes import (
    find_process_spread,
    next_process95,
    process_medians,
    processes_of,
)
from tracekit.comparison.judging.timed import Timed, calls_that_count, compilations_while_timed, without_compiling
from tracekit.model.comparison import Verdict
from tracekit.model.estimate import Estimate, compare_estimates, exactly
from tracekit.model.note import Note
from tracekit.model.run import FormName, FormResult
from tracekit.model.timing import ControlCall
from tracekit.statistics.interval import (
    Interval,
    Values,
    block_length,
    interval_of_difference,
    interval_of_processes,
    median_interval,
    odd_even_noise,
    resampled_medians,
)

NOT_TIMED = Verdict("not_timed")
NOT_ALTERNATED = Note("not_alternated")
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
    def control_ratios(self) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
        """The logarithm of first by second call of a form in one round, with the round; of either side."""
        a, b = (
            [(each.round, math.log(us[each.round] / each.wall_us)) for each in controls if each.round < len(us)]
            for us, controls in ((self.a_us, self.a_controls), (self.b_us, self.b_controls))
        )
        return a, b


def judge(a: Timed, b: Timed, order: tuple[FormName, ...]) -> Judged:
    """The verdict, and what a reader must know of how it was reached.

    In alternation (`order` is not empty) the speed-up is the median over rounds of A's call by B's, with a block
    bootstrap interval; of several processes the mean of their medians, with Student's t. Not in alternation it is the
    ratio of the medians, and no verdict follows. Rounds in which a side compiled are left out of interval and
    floor, and the result is then inconclusive. Faster or slower needs an interval that leaves 1 out and a change beyond
    the noise floor and beyond what is small (docs/timing.md).
    """
    if not (a.form and b.form and a.form.wall_us and b.form.wall_us):
        return NOT_TIMED, (Note("not_timed"),)
    recompiled = tuple(
        Note("compiled_while_timed", subject=side.label, facts={"compilations": count})
        for side in (a, b)
        if (count := compilations_while_timed(side))
    )
    if not order:
        verdict, notes = _judge_separate_runs(a, b)
        return verdict, (*notes, *recompiled)

    ends = (float(np.median(a.form.wall_us)), float(np.median(b.form.wall_us)))
    own = without_compiling(a, b, np.asarray(a.form.wall_us), np.asarray(b.form.wall_us))
    every = _pairs_of_processes(a.form, b.form, own)
    rounds = min(len(a.form.wall_us), len(b.form.wall_us))
    uneven = () if len(a.form.wall_us) == len(b.form.wall_us) else (Note("uneven_calls", facts={"rounds": rounds}),)
    count = len(every[0].a_us)
    if count < thresholds.FEWEST_CALLS:
        speedup = math.exp(float(np.median(every[0].log_ratios)))
        verdict = Verdict("inconclusive", speedup, None, None, *ends, n=count, basis="rounds")
        repeats = len(a.form.timing.processes) if a.form.timing else 0
        return verdict, (*uneven, _too_few_calls(count, repeats), *recompiled)

    verdict, changed = _judge_pairs(every, ends, b.form, withheld=bool(recompiled))
    if not recompiled:
        verdict = replace(verdict, next_process95=next_process95(a, b, verdict))
    drifts = find_drift_of_ratio(every[0].a_us, every[0].b_us, verdict.ci95 or (0.0, math.inf))
    unsteady = (*find_unsteady_speeds(a, b), *drifts, *changed)
    spread = (*find_process_spread(a), *find_process_spread(b))
    return verdict, (*uneven, *recompiled, *unsteady, *spread)


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
    floor. Without controls (runs of older versions, few rounds) the odd and even calls of each form are compared.
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
    a_us, b_us = (float(np.median(side.form.wall_us if side.form else ())) for side in (a, b))
    fewest = min(map(len, calls))
    if fewest < thresholds.FEWEST_CALLS:
        verdict = Verdict("inconclusive", a_us / b_us, None, None, a_us, b_us, n=fewest, basis="apart")
        return verdict, (NOT_ALTERNATED, _too_few_calls(fewest))
    of_a, of_b = process_medians(a), process_medians(b)
    interval = interval_of_difference(of_a, of_b)
    verdict = Verdict(
        "inconclusive",
        *_speedup(interval),
        max(map(odd_even_noise, calls)),
        a_us,
        b_us,
        n=min(sum(map(len, processes_of(side))) for side in (a, b)),
        processes=min(len(of_a), len(of_b)),
        basis="apart",
        block=interval.block,
    )
    return verdict, (NOT_ALTERNATED,)


def _judge_pairs(every: tuple[Pairs, ...], ends: tuple[float, float], b: FormResult, *, withheld: bool) -> Judged:
    """The verdict on both sides' calls in the same rounds, and a note where one form changed its speed by itself so far
    that this decides what counts as a change. `ends` are the sides' medians in the run's own process."""
    within = tuple(median_interval(pairs.log_ratios) for pairs in every)
    single = len(every) == 1
    interval = within[0] if single else interval_of_processes(within)
    if not single:
        # The mean (of logarithms) of the processes' medians, as the speed-up is.
        medians = np.log([(np.median(pairs.a_us), np.median(pairs.b_us)) for pairs in every])
        a_us, b_us = np.exp(medians.mean(axis=0))
        ends = float(a_us), float(b_us)
    speedup, ci95 = _speedup(interval)
    ratios = [math.exp(each.middle) for each in within]
    noise, changes = find_noise_floor(every), [ratio_change(pairs.a_us, pairs.b_us) for pairs in every]
    least, changed = (
        thresholds.LEAST_IN_SEVERAL if len(every) >= thresholds.ENOUGH_PROCESSES else thresholds.LEAST_IN_ONE_PROCESS,
        max(changes),
    )
    notes: tuple[Note, ...] = ()
    if changed > least:
        repeat = None if single else changes.index(changed)
        least, notes = changed, (Note("ratio_changed", facts={"share": changed, "repeat": repeat}),)
    estimate = Estimate(speedup, *ci95)
    order = None if withheld else compare_estimates(estimate, exactly(1.0), max(noise, least))
    # Of several processes the reason of one that did not reach its target, where there is one.
    stops = [b.timing.stopped, *(each.stopped for each in b.timing.processes)] if b.timing else []
    verdict = Verdict(
        "faster" if order == "larger" else "slower" if order == "smaller" else "inconclusive",
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
    )
    return verdict, notes


def _speedup(interval: Interval) -> tuple[float, tuple[float, float]]:
    """Of the logarithm's interval."""
    return math.exp(interval.middle), (math.exp(interval.low), math.exp(interval.high))


def _pairs_of_processes(a: FormResult, b: FormResult, times: tuple[Values, Values]) -> tuple[Pairs, ...]:
    """The run's own process, whose calls that count are `times`, and those that repeated it and made enough calls."""
    rounds = min(map(len, times))
    whole = len(times[0]) == len(a.wall_us)
    # Controls are known by the number of their round, which says nothing where rounds are left out.
    controls = ((form.timing.controls if form.timing and whole else ()) for form in (a, b))
    every = [Pairs(times[0][:rounds], times[1][:rounds], *controls)]
    repeats = zip(a.timing.processes, b.timing.processes, strict=False) if a.timing and b.timing else ()
    for one, other in repeats:
        rounds = min(len(one.wall_us), len(other.wall_us))
        if rounds >= thresholds.FEWEST_CALLS:
            a_us, b_us = np.asarray(one.wall_us[:rounds]), np.asarray(other.wall_us[:rounds])
            every.append(Pairs(a_us, b_us, one.controls, other.controls))
    return tuple(every)


def _too_few_calls(calls: int, repeats: int = 0) -> Note:
    """That so few calls a side give no verdict; those of `repeats` of the process do not make up for it."""
    return Note("too_few_calls", facts={"calls": calls, "needed": thresholds.FEWEST_CALLS, "repeats": repeats})
