"""Lines of the user's own model, as they are when a report is made."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLines:
    """The line that a `file:line` names, with its neighbours. `first` is the number of the first of `lines`."""

    first: int
    line: int
    lines: tuple[str, ...]
    changed: bool  #: The file was written after the run had begun.
