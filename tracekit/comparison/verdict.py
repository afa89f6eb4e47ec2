"""Which side is faster? Answered from unprofiled times only; traces have no say."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracekit.comparison.compiling_calls import without_compiling
from tracekit.model.comparison import Side, Verdict
from tracekit.model.run import FormName

#: Fewer calls than this say nothing about spread.
FEWEST_CALLS = 5
RESAMPLES = 2000
SEED = 0

Result = Literal["faster", "slower", "inconclusive"]
Times = NDArray[np.float64]

NOT_TIMED = Verdict("not_timed", None, None, None, None, None)


def judge(a: Side, b: Side, order: tuple[FormName, ...]) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict, and what a reader must know of how it was reached.

    The speed-up is the ratio of the median walls. Its interval is a 95 % bootstrap one: rounds are resampled whole when
    the sides were timed in alternation, each side by itself when not. The noise floor is an A/A control (see
    `find_noise_floor`).
    Rounds in which something compiled are left out of interval and floor, and the result is then inconclusive.
    Faster or slower needs calls in alternation, an interval that leaves 1 out, and a change beyond the noise floor.
    """
    if not (a.form and b.form and a.form.wall_us and b.form.wall_us):
        return NOT_TIMED, ("No unprofiled times of both sides: the traces alone cannot say which side is faster.",)
    a_us, b_us, interleaved, warnings = _timed_calls(a.form.wall_us, b.form.wall_us, order)
    recompiled = _recompiled(a, b)
    warnings += recompiled
    ends = (float(np.median(a_us)), float(np.median(b_us)))
    speedup = ends[0] / ends[1]
    a_us, b_us = without_compiling(a, b, a_us, b_us)
    fewest = min(len(a_us), len(b_us))
    if fewest < FEWEST_CALLS:
        warnings += (f"Only {fewest} timed calls a side: a verdict needs {FEWEST_CALLS} at least (--iterations).",)
        return Verdict("inconclusive", speedup, None, None, *ends), warnings
    ci95 = bootstrap_interval(a_us, b_us, paired=interleaved)
    noise = max(find_noise_floor(a_us), find_noise_floor(b_us))
    result: Result = "inconclusive" if recompiled or not interleaved else _decide(speedup, ci95, noise)
    return Verdict(result, speedup, ci95, noise, *ends), warnings


def _timed_calls(
    a_wall_us: tuple[float, ...], b_wall_us: tuple[float, ...], order: tuple[FormName, ...]
) -> tuple[Times, Times, bool, tuple[str, ...]]:
    """The calls that count, whether call k of one side ran beside call k of the other, and warnings."""
    a_us, b_us = np.asarray(a_wall_us), np.asarray(b_wall_us)
    if not order:
        warning = "The sides were not timed in alternation: drift of the machine between them counts as a difference."
        return a_us, b_us, False, (warning,)
    rounds = min(len(a_us), len(b_us))
    if len(a_us) == len(b_us):
        return a_us, b_us, True, ()
    warning = f"One side has more timed calls than the other; only the first {rounds} rounds, made of both, count."
    return a_us[:rounds], b_us[:rounds], True, (warning,)


def _recompiled(a: Side, b: Side) -> tuple[str, ...]:
    return tuple(
        f"{side.label} compiled {side.form.compilation.during_timing} times while timed: the verdict is withheld."
        for side in (a, b)
        if side.form and side.form.compilation and side.form.compilation.during_timing
    )


def _decide(speedup: float, ci95: tuple[float, float], noise: float) -> Result:
    if ci95[0] > 1 and speedup - 1 > noise:
        return "faster"
    if ci95[1] < 1 and 1 / speedup - 1 > noise:
        return "slower"
    return "inconclusive"


def bootstrap_interval(a_us: Times, b_us: Times, *, paired: bool) -> tuple[float, float]:
    """The 95 % interval of median(a) / median(b); `paired` resamples call k of both sides together."""
    random = np.random.default_rng(SEED)
    a_picks = random.integers(0, len(a_us), (RESAMPLES, len(a_us)))
    b_picks = a_picks if paired else random.integers(0, len(b_us), (RESAMPLES, len(b_us)))
    ratios = np.median(a_us[a_picks], axis=1) / np.median(b_us[b_picks], axis=1)
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(low), float(high)


def find_noise_floor(wall_us: Times) -> float:
    """How far a form seems to differ from itself: 0.01 is 1 %.

    The calls are split into odd and even ones, which drift meets alike, and compared as if they were two forms. What
    comes back is the 95th percentile of |ratio - 1| over bootstrap resamples of neighbouring pairs. Each half has half
    the calls, so this errs on the side of a higher floor.
    """
    pairs = len(wall_us) // 2
    odd, even = wall_us[: 2 * pairs : 2], wall_us[1 : 2 * pairs : 2]
    picks = np.random.default_rng(SEED).integers(0, pairs, (RESAMPLES, pairs))
    ratios = np.median(odd[picks], axis=1) / np.median(even[picks], axis=1)
    return float(np.percentile(np.abs(ratios - 1), 95))
