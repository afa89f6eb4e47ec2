"""Where a trace's bytes come from: a file of this machine, standard input, or wherever fsspec reaches."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.tracefile.places import is_url, open_url, refusal, said_in_one_line
from tracekit.tracefile.rank_files import refuse_ranks, traces_in

#: What stands for standard input on the command line.
STDIN = "-"


class Source(Struct, frozen=True):
    """An open trace. `bytes` is its length as it lies there, packed or not; None where nobody knows before the end.
    `path` is where it can be read again; None for pipes and for what is no file of this machine."""

    name: str
    stream: BinaryIO
    bytes: int | None
    path: Path | None


@contextmanager
def opened(place: Path | str) -> Iterator[Source]:
    """The file, open for reading. Raises TracekitError when there is none to read."""
    if not str(place):
        raise TracekitError("the path of the trace is empty")
    if str(place) == STDIN:
        try:
            # Without a buffer: a thread that still waits for one when the program is interrupted would abort it.
            stream: BinaryIO = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115
        except (OSError, ValueError):
            # Standard input is no file, as in a test.
            stream = sys.stdin.buffer
        yield Source("standard input", stream, None, None)
    elif isinstance(place, str) and is_url(place):
        with _opened_url(place) as source:
            yield source
    else:
        path = _only_trace_in(Path(place)) if Path(place).is_dir() else Path(place)
        with said_in_one_line(str(path)):
            file = path.open("rb")
        with file:
            is_regular = path.is_file()
            yield Source(str(path), file, path.stat().st_size if is_regular else None, path if is_regular else None)


def raise_if_absent(place: str) -> None:
    """Raises TracekitError where the place is a path that does not exist; of URLs and standard input nothing is known
    before they are read."""
    if place != STDIN and not is_url(place) and not Path(place).exists():
        raise refusal(place, FileNotFoundError())


def _only_trace_in(folder: Path) -> Path:
    traces = traces_in(folder)
    if len(traces) == 1:
        return traces[0]
    if not traces:
        raise TracekitError(f"{folder} holds no trace and no run.json; pass a trace file or a run folder")
    refuse_ranks(folder)
    names = ", ".join(path.name for path in traces[:5]) + (", ..." if len(traces) > 5 else "")
    raise TracekitError(f"{folder} holds {len(traces)} traces: pass one of them ({names})")


@contextmanager
def _opened_url(url: str) -> Iterator[Source]:
    # What goes wrong while it is read is said where it is read.
    file = open_url(url)
    with file:
        yield Source(url, file, getattr(file, "size", None), None)
