"""How a long job says what it is doing. The command line shows it; the rooms only tell."""

from collections.abc import Sequence
from typing import Protocol


class Progress(Protocol):
    """Told of each phase as it begins and of what happens in it, and of the stages that a plan has of them."""

    def stages(self, names: Sequence[str]) -> None:
        """The stages that are to come, in their order. Each has one phase or more."""

    def stage(self, name: str, *, at_most_seconds: float | None = None, like: Sequence[str] = ()) -> None:
        """A stage begins with the next phase. It ends after `at_most_seconds`, or takes about as long as the stages
        `like` it took together; neither, where nothing is known."""

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

    def stages(self, names: Sequence[str]) -> None: ...

    def stage(self, name: str, *, at_most_seconds: float | None = None, like: Sequence[str] = ()) -> None: ...

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None: ...

    def detail(self, text: str) -> None: ...

    def advance(self) -> None: ...
