"""Traces that were read before, kept as Parquet tables in the user's cache folder.

An entry is named after the content of the file it was made of, so it is never stale; one that is damaged is made anew.
Entries are written under another name first and then renamed: half an entry is none. Parquet readers check no sums, and
a flipped bit would pass for another figure: an entry keeps those of its files.
"""

import contextlib
import hashlib
import io
import logging
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import xxhash
from msgspec import Struct

from tracekit import __version__
from tracekit.model.trace import CollectiveSignature, Device, Distributed, Thread, Trace
from tracekit.tracefile.events import Detail
from tracekit.tracefile.tables import SCHEMAS, schemas

#: Part of an entry's name: to be raised when the tables, or how they are filled, change.
FORMAT = 10
ABOUT = "trace.json"
#: What the name of an entry ends in that was read in more detail.
ENDINGS: dict[Detail, str] = {"plain": "", "shapes": "-shapes", "collectives": "-collectives"}
#: Files below this are read as fast as their entry would be.
SMALLEST_BYTES = 1 << 20
#: The folder's size above which entries that were not used for longest are removed.
LARGEST_BYTES = 4 << 30

log = logging.getLogger(__name__)


class About(Struct, frozen=True):
    """All of a trace but its tables and its path, and the sums of the tables' files."""

    sums: dict[str, str]
    events: int
    bytes: int
    skipped: dict[str, int]
    unplaced: int
    truncated: bool
    threads: tuple[Thread, ...]
    devices: tuple[Device, ...]
    allocations: int
    peak_allocated_bytes: int | None
    record_flags: dict[str, bool]
    resolution_ns: float
    metadata: dict[str, object]
    origin_ns: int
    host_name: str | None
    distributed: Distributed | None
    signatures: tuple[CollectiveSignature, ...]


KEPT = tuple(each for each in About.__struct_fields__ if each != "sums")


def default_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("tracekit", appauthor=False)) / "traces"


def entry_of(path: Path, folder: Path, detail: Detail) -> Path:
    """Where the entry of this file is, or will be. Reads the whole file, for its name is made of its content.

    A trace that was read in another detail has an entry of its own: it has other columns.
    """
    with path.open("rb") as file:
        content = hashlib.file_digest(file, xxhash.xxh3_128)
    return folder / f"{content.hexdigest()}-{__version__}-{FORMAT}{ENDINGS[detail]}"


def load(entry: Path, name: str, detail: Detail) -> Trace | None:
    """The trace as it was read before, now called `name`; None where there is no sound entry."""
    try:
        # The first line is the sum of what follows.
        sum_, _, text = (entry / ABOUT).read_bytes().partition(b"\n")
        about = msgspec.json.decode(_checked(text, sum_.decode(errors="replace")), type=About)
        tables: dict[str, Any] = {
            table: pl.read_parquet(_checked((entry / f"{table}.parquet").read_bytes(), about.sums[table]))
            for table in SCHEMAS
        }
        os.utime(entry)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, RecursionError, pl.exceptions.PolarsError) as error:
        log.info("damaged cache entry %s: %s", entry, error)
        return None
    if any(tables[table].schema != pl.Schema(schema) for table, schema in schemas(detail).items()):
        return None
    return Trace(path=name, **{each: getattr(about, each) for each in KEPT}, **tables)


def _checked(content: bytes, sum_: str) -> bytes:
    if xxhash.xxh3_128_hexdigest(content) != sum_:
        raise OSError("a file of it has changed")
    return content


def save_beside(trace: Trace, entry: Path) -> None:
    """Writes the entry in a thread of its own, which the program waits for before it ends."""

    def write() -> None:
        try:
            save(trace, entry)
            _make_room(entry.parent)
        except (OSError, RecursionError, pl.exceptions.PolarsError) as error:
            # A cache that cannot be written costs time alone, so the user is not bothered.
            log.info("cannot cache %s: %s", trace.path, error)

    threading.Thread(target=write, name="tracekit-cache").start()


def save(trace: Trace, entry: Path) -> None:
    """Writes the entry. Raises OSError where the folder cannot be written to."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=entry.parent, prefix=".draft-"))
    try:
        sums: dict[str, str] = {}
        for table in SCHEMAS:
            content = io.BytesIO()
            getattr(trace, table).write_parquet(content, compression="lz4", statistics=False)
            (draft / f"{table}.parquet").write_bytes(content.getbuffer())
            sums[table] = xxhash.xxh3_128_hexdigest(content.getbuffer())
        text = msgspec.json.encode(About(sums, **{each: getattr(trace, each) for each in KEPT}))
        (draft / ABOUT).write_bytes(xxhash.xxh3_128_hexdigest(text).encode() + b"\n" + text)
        shutil.rmtree(entry, ignore_errors=True)
        # Another process may have been faster; its entry is as good.
        with contextlib.suppress(FileExistsError):
            draft.rename(entry)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _make_room(folder: Path) -> None:
    """Removes the entries that were not used for longest, until the rest is small enough."""
    entries = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: -path.stat().st_mtime)
    size = 0
    for entry in entries:
        size += sum(path.stat().st_size for path in entry.iterdir())
        if size > LARGEST_BYTES:
            shutil.rmtree(entry, ignore_errors=True)
