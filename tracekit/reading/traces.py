"""Reading a trace as a command asks for it, with a bar on the terminal should it take a while."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tracekit.console import PrintableConsole
from tracekit.errors import TracekitError
from tracekit.interpreter import usable_cores
from tracekit.model.sequence import MOST_ACTIVITIES

if TYPE_CHECKING:
    from rich.progress import Progress

    from tracekit.model.analysis import Analysis
    from tracekit.model.sequence import Sequence
    from tracekit.model.timeline import StepTimeline
    from tracekit.model.trace import Trace

    #: What `Reading.look` sees of a trace.
    Looked = tuple[Analysis, Sequence | None, StepTimeline | None]

#: Nobody needs a bar for less.
PATIENCE_SECONDS = 1.0


class Reading(Struct, frozen=True):
    """What of a trace is to be read, as the options of `analyze` and `compare` say it. `steps` are the first and the
    last number of the marked steps that count, None for all. Files that were read before come from the cache if
    `cached`. `shapes` reads the inputs of operators too, by which the work of two sides is matched. `drawn` lays a step
    out for the page's timeline."""

    window: str = "auto"
    steps: tuple[int, int] | None = None
    cpu: bool = False
    cached: bool = True
    shapes: bool = False
    drawn: bool = True

    def read(self, place: Path | str) -> Trace:
        """The trace at this place: a file, `-`, or a URL; a bar shows how far reading is after a second."""
        from tracekit.tracefile.cache import default_folder
        from tracekit.tracefile.read import read_trace

        console, began = PrintableConsole(stderr=True), time.monotonic()
        bar: Progress | None = None

        def on_bytes(done: int, total: int | None) -> None:
            nonlocal bar
            if bar is None and console.is_terminal and time.monotonic() - began >= PATIENCE_SECONDS:
                from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

                text = TextColumn("{task.description}", markup=False)
                columns = (text, BarColumn(), DownloadColumn(), TimeRemainingColumn())
                bar = Progress(*columns, console=console, transient=True)
                bar.add_task(f"reading {Path(str(place)).name}", total=None)
                bar.start()
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done, total=total)

        try:
            folder = default_folder() if self.cached else None
            return read_trace(
                place, on_bytes=on_bytes, cache_folder=folder, shapes=self.shapes, processes=usable_cores()
            )
        finally:
            if bar is not None:
                bar.stop()

    def analyze(self, trace: Trace) -> Analysis:
        from tracekit.analysis import analyze

        return analyze(trace, window=self.window, steps=self.steps, cpu=self.cpu)

    def look(self, trace: Trace) -> Looked:
        """Its analysis, what the GPU did activity by activity, or a CPU operator by operator, and one step of that
        moment by moment: both None where it did nothing, where it did too much to look at one by one, and where shapes
        were not asked for; the latter where it is not to be drawn."""
        analysis = self.analyze(trace)
        if not self.shapes:
            return analysis, None, None
        if analysis.cpu is not None:
            # A CPU's steps differ more than a GPU's: of a few one may be anything.
            return analysis, *self._look_at_operators(trace)
        if not 0 < trace.activities.height <= MOST_ACTIVITIES:
            return analysis, None, None
        from tracekit.analysis.sequence import list_and_draw, list_work

        if not self.drawn:
            return analysis, list_work(trace, self.window, self.steps), None
        return analysis, *list_and_draw(trace, self.window, self.steps)

    def _look_at_operators(self, trace: Trace) -> tuple[Sequence | None, StepTimeline | None]:
        from statistics import median

        from tracekit.analysis.cpu_work import cpu_work
        from tracekit.analysis.sequence import list_and_draw

        work = cpu_work(trace)
        if not 0 < work.activities.height <= MOST_ACTIVITIES:
            return None, None
        return list_and_draw(work, self.window, self.steps, typical=median)


def parse_steps(text: str | None) -> tuple[int, int] | None:
    """`3` is step 3, `2-4` are steps 2 to 4. Raises TracekitError for anything else."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", text.strip())
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if first > last:
        raise TracekitError(f"--steps takes a step's number or a range of them, as in 3 or 2-4, not {text[:40]!r}")
    return first, last
