"""How a long job says what it is doing. The command line shows it; the rooms only tell."""

from typing import Protocol


class Progress(Protocol):
    """Told of each phase as it begins and of what happens in it."""

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None:
        """A new phase begins; the one before it is over. `total` is how many `advance` calls to expect, if known.

        `still`: the phase is being measured, so between calls of `advance` hardly anything is drawn.
        """

    def detail(self, text: str) -> None:
        """What is going on within the phase: `graph 3`, `call 12`."""

    def advance(self) -> None:
        """One unit of the phase is done."""


class Silent:
    """Shows nothing: for tests and library use."""

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None: ...

    def detail(self, text: str) -> None: ...

    def advance(self) -> None: ...
