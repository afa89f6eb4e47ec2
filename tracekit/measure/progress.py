"""Progress on the terminal: a live line where there is a terminal, plain lines where there is none (CI, a pipe)."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
#: After so many counted calls their pace is known.
PACE_CALLS = 3


class Stages:
    """Which stage of a plan goes on, and for how long: what each display says of it. Of no plan it says nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.names: tuple[str, ...] = ()
        self._clock = clock
        self._name = ""
        self._began = clock()
        self._took: dict[str, float] = {}
        self._expected: float | None = None
        self._word = ""

    def stages(self, names: Sequence[str]) -> None:
        """The plan."""
        self.names = tuple(names)

    def stage(self, name: str, *, at_most_seconds: float | None = None, like: Sequence[str] = ()) -> None:
        """The stage before it is over."""
        self._took[self._name] = self._clock() - self._began
        self._name, self._began = name, self._clock()
        self._expected, self._word = at_most_seconds, "at most"
        if at_most_seconds is None and like and all(each in self._took for each in like):
            self._expected, self._word = sum(self._took[each] for each in like), "about"

    def named(self, phase: str) -> str:
        """The phase with its stage's place: `4 of 9, recording compiled`."""
        if self._name not in self.names:
            return phase
        return f"{self.names.index(self._name) + 1} of {len(self.names)}, {phase}"

    def left(self, done: float = 0, total: float | None = None, elapsed: float | None = None) -> str:
        """What is left of the stage: `, about 40 s left of it`; empty where nobody knows, or it takes longer than
        was thought. `elapsed` are the seconds that `done` of `total` calls took."""
        left, word = None, self._word
        if self._expected is not None:
            left = self._expected - (self._clock() - self._began)
        elif total and elapsed is not None and done >= PACE_CALLS:
            left, word = elapsed / done * (total - done), "about"
        return f", {word} {left:.0f} s left" if left is not None and left >= 1 else ""


class LiveProgress(Stages):
    """One line of a plan, else a bar a phase; its clock runs on while torch is busy, so nobody wonders.

    Drawing takes milliseconds of this process: while something is measured it is done between calls, unless a call
    lasts so long that it does not matter.
    """

    #: Drawn as long as the display lasts.
    bars: Bars

    def __init__(self) -> None:
        super().__init__()
        self._task: TaskID | None = None
        self._still = False
        self._drawn = time.monotonic()

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None:
        self.close()
        if self.names and self._task is not None:
            self.bars.remove_task(self._task)
        self._still = still
        self._task = self.bars.add_task(self.named(name), total=total, detail="", counted=total is not None)
        self._draw()

    def detail(self, text: str) -> None:
        if self._task is not None:
            self.bars.update(self._task, detail=text)

    def advance(self) -> None:
        if self._task is not None:
            self.bars.advance(self._task)
        if self._still and time.monotonic() - self._drawn > BETWEEN_CALLS_SECONDS:
            self._draw()

    def close(self) -> None:
        """The phase is over: its bar is full and its clock stands."""
        if self._task is not None:
            total = self.bars.tasks[-1].total or 1
            self.bars.update(self._task, total=total, completed=total)

    def tick(self) -> None:
        """Draws, if it is time."""
        if time.monotonic() - self._drawn > (STILL_SECONDS if self._still else 0):
            self._draw()

    def _draw(self) -> None:
        self.bars.refresh()
        self._drawn = time.monotonic()


class CountColumn(ProgressColumn):
    """`12/40` for a phase whose calls are counted."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:.0f}/{task.total:.0f}" if task.fields["counted"] else "", style="green")


class PhaseColumn(ProgressColumn):
    """What is done, what is left, and the detail of it. It may name files, so nothing is read as markup."""

    def __init__(self, stages: Stages, table_column: Column) -> None:
        super().__init__(table_column)
        self._stages = stages

    def render(self, task: Task) -> Text:
        left = "" if task.finished else self._stages.left(task.completed, task.total, task.elapsed)
        return Text.assemble(task.description, left, "  ", (task.fields["detail"], "dim"))


class PlainProgress(Stages):
    """A line a phase, and a sign of life every so often while it lasts."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._phase = self._detail = ""
        self._phase_began = time.monotonic()
        self._total: int | None = None
        self._done = 0

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None:
        self.close()
        self._total, self._done = total, 0
        self._detail, self._phase_began, self._phase = "", time.monotonic(), self.named(name)
        self._console.print(f"{self._phase} ...")

    def detail(self, text: str) -> None:
        self._detail = text

    def advance(self) -> None:
        self._done += 1

    def close(self) -> None:
        """The phase is over: how long it took."""
        if self._phase:
            self._console.print(f"{self._phase}: {time.monotonic() - self._phase_began:.1f} s")
        self._phase = ""

    def tick(self) -> None:
        """Says that the phase goes on."""
        if self._phase:
            elapsed = time.monotonic() - self._phase_began
            left = self.left(self._done, self._total, elapsed)
            detail = f", {self._detail}" if self._detail else ""
            self._console.print(f"  {self._phase}: {elapsed:.0f} s so far{left}{detail}")


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
    live = LiveProgress()
    columns = (
        SpinnerColumn(finished_text="[green]✓[/]"),
        BarColumn(bar_width=10),
        CountColumn(),
        TimeElapsedColumn(),
        # What is left of the line: of a narrow terminal's, the end of the text goes and never the clock.
        PhaseColumn(live, Column(ratio=1, no_wrap=True, overflow="ellipsis")),
    )
    # Drawn once more when it is left.
    with Bars(*columns, console=console, auto_refresh=False, expand=True) as live.bars, _every(LIVE_SECONDS, live.tick):
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
