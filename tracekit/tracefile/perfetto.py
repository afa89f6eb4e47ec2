"""A picture as a trace file for Perfetto: Chrome JSON, gzipped.

Every track is one thread of its panel's process, or several where slices would overlap. Perfetto's arrows follow time:
where the second panel's slice is the earlier one, the arrow begins there.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import polars as pl

from tracekit.errors import TracekitError
from tracekit.files import replaced, written
from tracekit.model.picture import Counter, Panel, Picture, Track
from tracekit.tracefile.lanes import nested, side_by_side

SCHEMA = "tracekit.perfetto/1"
#: Threads of a process are numbered from its own number times this.
THREADS_OF_A_PROCESS = 10_000
EVENTS_AT_ONCE = 1000
#: What arrows are called in the list of flows.
ARROWS = "eager work and what became of it"

Event = dict[str, Any]
#: Process, thread and start of the slice with each key.
Ends = dict[int, tuple[int, int, int]]


def write_picture(picture: Picture, path: Path, *, is_named: bool = False) -> int:
    """Writes the whole file or nothing; returns how many bytes the JSON has unpacked.

    `is_named` is whether a user named the place: a pipe or a device there is written into, and a link is followed. At a
    place that tracekit chose, which may lie in a stranger's folder, all of these are replaced. Raises TracekitError
    where nothing can be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (written if is_named else replaced)(path) as file:
            return _write(picture, file)
    except OSError as error:
        raise TracekitError(f"cannot write {path}: {error.strerror}; name another place with --out") from None


def _write(picture: Picture, file: BinaryIO) -> int:
    # No time and no name in it: the same picture is the same file.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
        return sum(packed.write(piece) for piece in _pieces(picture))


def _pieces(picture: Picture) -> Iterator[bytes]:
    head = {"schema": SCHEMA, "left out": picture.notes}
    yield b'{"displayTimeUnit":"ns","tracekit":' + msgspec.json.encode(head) + b',"traceEvents":[\n'
    events = _events(picture)
    before = b""
    while some := list(islice(events, EVENTS_AT_ONCE)):
        yield before + b",\n".join(map(msgspec.json.encode, some))
        before = b",\n"
    yield b"\n]}\n"


def _events(picture: Picture) -> Iterator[Event]:
    ends: list[Ends] = []
    for number, panel in enumerate(picture.panels, 1):
        keyed: Ends = {}
        yield _about("process_name", number, 0, name=panel.name)
        yield _about("process_sort_index", number, 0, sort_index=number)
        thread = number * THREADS_OF_A_PROCESS
        for track in panel.tracks:
            lanes = (nested if track.nests else side_by_side)(track.slices.select("start_ns", "end_ns").iter_rows())
            for lane in range(max(lanes, default=-1) + 1):
                again = f" ({lane + 1})" if lane else ""
                yield _about("thread_name", number, thread + lane, name=f"{panel.name}: {track.name}{again}")
                yield _about("thread_sort_index", number, thread + lane, sort_index=thread + lane)
            yield from _slices(track, number, thread, lanes, keyed)
            thread += max(lanes, default=-1) + 1
        for counter in panel.counters:
            yield from _points(panel, counter, number)
        ends.append(keyed)
    if len(ends) == 2:
        yield from _arrows(picture.arrows, *ends)


def _about(kind: str, process: int, thread: int, **said: Any) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": said}


def _slices(track: Track, process: int, first_thread: int, lanes: list[int], keyed: Ends) -> Iterator[Event]:
    for (kind, name, start, end, details, key), lane in zip(track.slices.iter_rows(), lanes, strict=True):
        event: Event = {
            "ph": "X",
            "cat": kind,
            "name": name,
            "pid": process,
            "tid": first_thread + lane,
            "ts": start / 1000,
            "dur": (end - start) / 1000,
        }
        if details is not None:
            event["args"] = msgspec.Raw(details.encode())
        if key is not None:
            keyed[key] = process, first_thread + lane, start
        yield event


def _points(panel: Panel, counter: Counter, process: int) -> Iterator[Event]:
    name = f"{panel.name}: {counter.name}"
    for at, value in counter.points.iter_rows():
        yield {"ph": "C", "name": name, "pid": process, "ts": at / 1000, "args": {counter.unit: value}}


def _arrows(arrows: pl.DataFrame, a_ends: Ends, b_ends: Ends) -> Iterator[Event]:
    for number, (name, a_key, b_key) in enumerate(arrows.iter_rows(), 1):
        # Perfetto drops an arrow that ends before it begins.
        (process, thread, start), (to_process, to_thread, to_start) = sorted(
            (a_ends[a_key], b_ends[b_key]), key=lambda end: end[2]
        )
        shared = {"cat": ARROWS, "name": name, "id": number}
        yield {"ph": "s", **shared, "pid": process, "tid": thread, "ts": start / 1000}
        yield {"ph": "f", "bp": "e", **shared, "pid": to_process, "tid": to_thread, "ts": to_start / 1000}
