"""What a reader is advised to do, and advice that was tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tracekit.model.bounded import CallMicroseconds, Count, Ratio, Real, Seconds, Text, doc

ActionCode = Literal[
    "run_again",
    "list_scopes",
    "compile_layers",
    "pin_memory",
    "keep_on_gpu",
    "read_after_the_call",
]


@dataclass(frozen=True, slots=True)
class Action:
    """What a reader is advised to do."""

    code: ActionCode
    command: Annotated[str | None, doc("What to type; None where a model's code is to be changed.")] = None


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
