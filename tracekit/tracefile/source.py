"""Where a trace's bytes come from: a file of this machine, standard input, or wherever fsspec reaches; and which traces
lie in a folder, of which ranks of a job: by the beginning of the recording, else by its name."""

import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard
from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.files import GZIP_MAGIC, ZSTD_MAGIC
from tracekit.shell import quoted
from tracekit.tracefile.places import is_url, open_url, refusal, said_in_one_line

#: What stands for standard input on the command line.
STDIN = "-"
#: How the names of trace files end, for those in a folder.
ENDINGS = (".json", ".json.gz", ".json.zst", ".json.zstd")
#: A rank's number in a file's name, as recorders write it: `rank3`, `rank_3`, `worker3_step_12`, `gpu-3`.
RANK_IN_NAME = re.compile(r"(?:rank|worker|gpu|device)[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)
#: The same as torch.profiler writes it before the events.
STATED = re.compile(rb'"distributedInfo":\s*\{[^{}]*?"rank":\s*(\d{1,6})\b')
#: What is read of a file for that, packed, and what that may unpack to.
BEGINNING_BYTES = 1 << 16
MOST_BYTES = 1 << 20
#: Ranks, and files of one, that are named.
MOST_NAMED = 8


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
        # What goes wrong while it is read is said where it is read.
        with open_url(place) as file:
            yield Source(place, file, getattr(file, "size", None), None)
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


def traces_in(folder: Path) -> list[Path]:
    """What is called like a trace, by name."""
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name.endswith(ENDINGS))


def rank_in_name(path: Path) -> int | None:
    """The last that is there: folders of jobs count from the outside in."""
    found = RANK_IN_NAME.findall(path.name)
    return int(found[-1]) if found else None


def trace_of_rank(folder: Path, rank: int) -> Path:
    """The one trace of this rank in the folder. Raises TracekitError where there is none, or several."""
    found = by_rank(traces_in(folder))
    if rank not in found:
        there = f"it has those of {_listed(found)}" if found else "no trace in it says which rank it is of"
        raise TracekitError(f"{folder} has no trace of rank {rank}: {there}")
    if len(found[rank]) > 1:
        names = ", ".join(path.name for path in found[rank][:MOST_NAMED])
        raise TracekitError(f"{folder} has {len(found[rank])} traces of rank {rank}: name one of them ({names})")
    return found[rank][0]


def refuse_ranks(folder: Path) -> None:
    """Raises TracekitError where the folder holds traces of several ranks: no command but `ranks` reads more than
    one."""
    found = by_rank(traces_in(folder))
    if len(found) > 1:
        raise TracekitError(
            f"{folder} holds the traces of {_listed(found)}: `tracekit ranks {quoted(str(folder))}` reads them"
            " together; `analyze` and `compare` read one, by its file or by --rank N"
        )


def _listed(ranks: Iterable[int]) -> str:
    """`ranks 0, 1, 2 and 125 more`."""
    numbers = sorted(ranks)
    named = ", ".join(map(str, numbers[:MOST_NAMED]))
    more = f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
    return f"{'ranks' if len(numbers) > 1 else 'rank'} {named}{more}"


def by_rank(paths: Iterable[Path]) -> dict[int, list[Path]]:
    """The traces of each rank, in the order of ranks; those of no known one are left out."""
    found: dict[int, list[Path]] = {}
    for path in paths:
        stated = STATED.search(_beginning(path))
        rank = int(stated[1]) if stated else rank_in_name(path)
        if rank is not None:
            found.setdefault(rank, []).append(path)
    return dict(sorted(found.items()))


def _beginning(path: Path) -> bytes:
    """Of what the file holds, unpacked; empty where it cannot be read, which reading it as a trace will say."""
    try:
        with path.open("rb") as file:
            begin = file.read(BEGINNING_BYTES)
        if begin.startswith(GZIP_MAGIC):
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(begin, MOST_BYTES)
        if begin.startswith(ZSTD_MAGIC):
            with zstandard.ZstdDecompressor().stream_reader(begin) as reader:
                return reader.read(BEGINNING_BYTES)
    except (OSError, zlib.error, zstandard.ZstdError):
        return b""
    return begin
