"""What a reader is advised to do, and advice that was tried."""

from typing import ClassVar, Literal

from msgspec import Struct

from tracekit.model.bounded import CallMicroseconds, Count, Ratio, Real, Seconds, Text
from tracekit.model.statement import Statement

ActionCode = Literal[
    "run_again", "list_scopes", "compile_layers", "pin_memory", "keep_on_gpu", "read_after_the_call",
    "shard_then_compile", "wrap_then_compile", "prefetch_weights",
]  # fmt: skip


class Action(Struct, frozen=True):
    """What a reader is advised to do."""

    code: ActionCode
    command: str | None = None  #: What to type; None where a model's code is to be changed.


class Advice(Statement):
    """What a reader is advised to do: a command, or what to change in a program."""

    as_written = Action
    code: ClassVar[ActionCode]
    to_be_copied: ClassVar[bool] = False  #: As it stands: a command, or lines of a program.

    def written(self) -> Action:
        return Action(self.code)


class Command(Advice):
    """What to type."""

    to_be_copied = True
    command: str

    def written(self) -> Action:
        return Action(self.code, self.command)

    def long(self) -> str:
        return self.command


class VerifiedAdvice(Struct, frozen=True):
    """What came of following a finding's advice in a fresh process, beside what was predicted. Processes differ in
    speed, so it is the two speed-ups that are to be compared."""

    code: Text  #: The finding's.
    command: Text
    predicted_us: Real  #: The compiled call less the finding's saving.
    measured_us: CallMicroseconds  #: The call compiled as advised, timed in alternation with eager.
    eager_us: CallMicroseconds  #: That eager form's call, which tells how alike the two processes were.
    speedup: Ratio  #: Over that eager form.
    ci95: tuple[Ratio, Ratio] | None  #: Of the speed-up; None of fewer than five rounds.
    rounds: Count  #: How many it is of.
    compile_seconds: Seconds | None  #: Wall time of the warm-up calls that compiled.
    during_timing: Count = 0  #: Compilations inside the timed calls: these spoil the times.
    predicted_speedup: Ratio | None = None  #: `predicted_us` over the run's eager form.
