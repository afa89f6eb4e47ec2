"""Advice that was tried."""

from __future__ import annotations

from dataclasses import dataclass

from tracekit.model.bounded import CallMicroseconds, Count, Ratio, Real, Seconds, Text


@dataclass(frozen=True, slots=True)
class VerifiedAdvice:
    """What came of following a finding's advice (`code`) in a fresh process, beside what was predicted.

    `predicted_us` is the compiled call less the finding's saving, `predicted_speedup` what that is over the eager
    form of the run: processes differ in speed, so it is the two speed-ups that are to be compared. `measured_us` is
    the compiled call as advised, timed in alternation with the eager form: `speedup` over that eager form, with its
    95 % interval (None of fewer than five rounds), `rounds` is of how many. `eager_us` is that eager form's call,
    which tells how alike the two processes were. `compile_seconds` is what the warm-up calls that compiled took.
    `during_timing` is how much was compiled inside the timed calls, whose times are then not of compiled code
    alone.
    """

    code: Text
    command: Text
    predicted_us: Real
    measured_us: CallMicroseconds
    eager_us: CallMicroseconds
    speedup: Ratio
    ci95: tuple[Ratio, Ratio] | None
    rounds: Count
    compile_seconds: Seconds | None
    during_timing: Count = 0
    predicted_speedup: Ratio | None = None
