"""Progress of one process shown by another: the one that works keeps its state in a small file, the other reads it."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tracekit.files import write_replaced
from tracekit.model.progress import Progress

#: Within a phase its file is written so often at most.
BETWEEN_SECONDS = 0.2


class State(Struct, frozen=True):
    """What a process is doing; stages and phases are numbered, since two may have one name."""

    stages: tuple[str, ...] = ()
    stage: str = ""
    at_most_seconds: float | None = None
    like: tuple[str, ...] = ()
    phase_number: int = 0
    phase: str = ""
    total: int | None = None
    still: bool = False
    detail: str = ""
    done: int = 0


class Relaying:
    """A Progress that keeps its state in the file `path`."""

    def __init__(self, path: Path) -> None:
        self._path, self._state, self._written = path, State(), 0.0

    def stages(self, names: Sequence[str]) -> None:
        self._say(stages=tuple(names))

    def stage(self, name: str, *, at_most_seconds: float | None = None, like: Sequence[str] = ()) -> None:
        self._say(stage=name, at_most_seconds=at_most_seconds, like=tuple(like))

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None:
        self._written = 0.0
        number = self._state.phase_number + 1
        self._say(phase_number=number, phase=name, total=total, still=still, detail="", done=0)

    def detail(self, text: str) -> None:
        self._say(detail=text)

    def advance(self) -> None:
        self._say(done=self._state.done + 1)

    def _say(self, **news: Any) -> None:
        self._state = replace(self._state, **news)
        if time.monotonic() - self._written > BETWEEN_SECONDS:
            self._written = time.monotonic()
            write_replaced(self._path, msgspec.json.encode(self._state))


def shown_on(progress: Progress) -> Callable[[str], None]:
    """What is to be called with the file's text whenever that has changed: it shows the state on `progress`."""
    before = State()

    def show(text: str) -> None:
        nonlocal before
        now = msgspec.json.decode(text, type=State)
        if now.stages != before.stages:
            progress.stages(now.stages)
        if now.stage != before.stage:
            progress.stage(now.stage, at_most_seconds=now.at_most_seconds, like=now.like)
        is_new = now.phase_number != before.phase_number
        if is_new:
            progress.phase(now.phase, now.total, still=now.still)
        if now.detail and now.detail != before.detail:
            progress.detail(now.detail)
        for _ in range(now.done - (0 if is_new else before.done)):
            progress.advance()
        before = now

    return show
