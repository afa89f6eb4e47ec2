"""What one `tracekit run` is to do."""

from typing import Literal

from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.model.bounded import Amount, Percent

#: What ends a step.
Kind = Literal["optimizer", "call", "span", "function", "marked"]


class Asked(Struct, frozen=True):
    """What `--step` says; nothing where it is to be found."""

    kind: Kind | None = None
    name: str = ""  #: Of a span; of a function `module:qualified.name`.


def parse_step(text: str | None) -> Asked:
    """Raises TracekitError where it is none of the kinds."""
    if text is None:
        return Asked()
    kind, colon, name = text.partition(":")
    if kind == "optimizer" and not colon:
        return Asked("optimizer")
    if kind == "call" and not colon:
        return Asked("call")
    if kind == "span" and name:
        return Asked("span", name)
    if kind == "function" and all(name.partition(":")):
        return Asked("function", name)
    raise TracekitError(
        f"--step {text!r}: pass optimizer, call, span:NAME or function:MODULE:NAME (function:__main__:train_step)"
    )


class ProgramPlan(Struct, frozen=True):
    """As the command hands it to the process that becomes the program."""

    program: str  #: A file, or a module's name.
    arguments: tuple[str, ...]
    is_module: bool
    out: str  #: The run's folder, absolute.
    command: str
    force: bool = False
    step: str | None = None
    eager: bool = True
    stop: bool = False
    budget_seconds: Amount | None = None
    target_percent: Percent | None = None
    report: tuple[str, ...] = ()  #: Options of the command that reports.
    seed: int = 0
