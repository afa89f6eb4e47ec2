"""Advice that was tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tracekit.model.bounded import CallMicroseconds, Count, Ratio, Real, Seconds, Text, doc


@dataclass(frozen=True, slots=True)
class VerifiedAdvice:
    """What came of following a finding's advice in a fresh process, beside what was predicted. Processes differ in
    speed, so it is the two speed-ups that are to be compared."""

    code: Annotated[Text, doc("The finding's.")]
    command: Text
    predicted_us: Annotated[Real, doc("The compiled call less the finding's saving.")]
    measured_us: Annotated[CallMicroseconds, doc("The call compiled as advised, timed in alternation with eager.")]
    eager_us: Annotated[CallMicroseconds, doc("That eager form's call, which tells how alike the two processes were.")]
    speedup: Annotated[Ratio, doc("Over that eager form.")]
    ci95: Annotated[tuple[Ratio, Ratio] | None, doc("Of the speed-up; None of fewer than five rounds.")]
    rounds: Annotated[Count, doc("How many it is of.")]
    compile_seconds: Annotated[Seconds | None, doc("Wall time of the warm-up calls that compiled.")]
    during_timing: Annotated[Count, doc("Compilations inside the timed calls: these spoil the times.")] = 0
    predicted_speedup: Annotated[Ratio | None, doc("`predicted_us` over the run's eager form.")] = None
