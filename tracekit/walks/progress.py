"""Progress on the terminal: a live line where there is a terminal, plain lines where there is none (CI, a pipe)."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskID, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

from tracekit.console import PrintableConsole
from tracekit.model.progress import Progress

#: Without a terminal, how often a line says that a phase still goes on.
HEARTBEAT_SECONDS = 15.0

#: How often the live bars are drawn; while something is measured, at most so often between calls and within one.
LIVE_SECONDS = 0.125
BETWEEN_CALLS_SECONDS = 0.5
STILL_SECONDS = 5.0


class LiveProgress:
    """One bar a phase; its clock runs on while torch is busy, so nobody wonders.

    Drawing takes milliseconds of this process: while something is measured it is done between calls, unless a call
    lasts so long that it does not matter.
    """

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._still = False
        self._drawn = time.monotonic()

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None:
        self.close()
        self._still = still
        self._task = self._bars.add_task(name, total=total, detail="", counted=total is not None)
        self._draw()

    def detail(self, text: str) -> None:
        if self._task is not None:
            self._bars.update(self._task, detail=text)

    def advance(self) -> None:
        if self._task is not None:
            self._bars.advance(self._task)
        if self._still and time.monotonic() - self._drawn > BETWEEN_CALLS_SECONDS:
            self._draw()

    def close(self) -> None:
        """The phase is over: its bar is full and its clock stands."""
        if self._task is not None:
            total = self._bars.tasks[-1].total or 1
            self._bars.update(self._task, total=total, completed=total)

    def tick(self) -> None:
        """Draws, if it is time."""
        if time.monotonic() - self._drawn > (STILL_SECONDS if self._still else 0):
            self._draw()

    def _draw(self) -> None:
        self._bars.refresh()
        self._drawn = time.monotonic()


class CountColumn(ProgressColumn):
    """`12/40` for a phase whose calls are counted."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:.0f}/{task.total:.0f}" if task.fields["counted"] else "", style="green")


class PhaseColumn(ProgressColumn):
    """What is done, and the detail of it. Both may name files, so neither is read as markup."""

    def render(self, task: Task) -> Text:
        return Text.assemble(task.description, "  ", (task.fields["detail"], "dim"))


class PlainProgress:
    """A line a phase, and a sign of life every so often while it lasts."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._name = self._detail = ""
        self._began = time.monotonic()

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None:
        self.close()
        self._detail, self._began, self._name = "", time.monotonic(), name
        self._console.print(f"{name} ...")

    def detail(self, text: str) -> None:
        self._detail = text

    def advance(self) -> None: ...

    def close(self) -> None:
        """The phase is over: how long it took."""
        if self._name:
            self._console.print(f"{self._name}: {time.monotonic() - self._began:.1f} s")
        self._name = ""

    def tick(self) -> None:
        """Says that the phase goes on."""
        if self._name:
            detail = f", {self._detail}" if self._detail else ""
            self._console.print(f"  {self._name}: {time.monotonic() - self._began:.0f} s so far{detail}")


def console_of_its_own() -> Console:
    """A console on standard error that is still there while everybody else's output goes elsewhere."""
    try:
        own = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):
        # Standard error is no file, as in a test: then nothing can be put in its place either.
        return PrintableConsole(stderr=True)
    return PrintableConsole(file=os.fdopen(own, "w", buffering=1, encoding=sys.stderr.encoding, errors="replace"))


@contextmanager
def shown(console: Console) -> Iterator[Progress]:
    """Progress for as long as the block runs."""
    if not console.is_terminal:
        plain = PlainProgress(console)
        with _every(HEARTBEAT_SECONDS, plain.tick):
            yield plain
            plain.close()
        return
    columns = (
        SpinnerColumn(finished_text="[green]✓[/]"),
        BarColumn(bar_width=10),
        CountColumn(),
        TimeElapsedColumn(),
        # What is left of the line: of a narrow terminal's, the end of the text goes and never the clock.
        PhaseColumn(table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
    )
    # Drawn once more when it is left.
    with Bars(*columns, console=console, auto_refresh=False, expand=True) as bars:
        live = LiveProgress(bars)
        with _every(LIVE_SECONDS, live.tick):
            yield live
            live.close()


@contextmanager
def _every(seconds: float, tick: Callable[[], None]) -> Iterator[None]:
    """Calls it every so often, in a thread of its own, as long as the block lasts."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(seconds):
            tick()

    thread = threading.Thread(target=go_on, daemon=True, name="tracekit-progress")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
