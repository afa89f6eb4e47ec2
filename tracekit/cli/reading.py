"""Reading a trace with a bar on the terminal, should it take a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from tracekit.model.trace import Trace
from tracekit.tracefile import read_trace

#: Nobody needs a bar for less.
PATIENCE_SECONDS = 1.0


def read_with_bar(path: Path) -> Trace:
    """The trace of a file; a bar on standard error shows how far reading is once it has taken a second."""
    with bar_after(PATIENCE_SECONDS, f"reading {path.name}", Console(stderr=True)) as on_bytes:
        return read_trace(path, on_bytes=on_bytes)


@contextmanager
def bar_after(seconds: float, label: str, console: Console) -> Iterator[Callable[[int, int], None]]:
    """A function to be told (bytes done, bytes in all); it shows a bar when the block has lasted so long."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = progress.add_task(label, total=None)
    began = time.monotonic()

    def on_bytes(done: int, total: int) -> None:
        if time.monotonic() - began >= seconds:
            progress.start()
        progress.update(task, completed=done, total=total)

    try:
        yield on_bytes
    finally:
        progress.stop()
