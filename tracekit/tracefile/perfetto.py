"""A picture as a trace file for Perfetto: Chrome JSON, gzipped.

Every track is one thread of its panel's process, or several where slices would overlap. Perfetto's arrows follow time:
where the second slice is the earlier one, the arrow begins there. It leaves out slices that overlap in a thread
and do not nest. Of a name like a path it shortens the thread's, not that of the track below it: a pattern finds the
track alone.
"""

import gzip
import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tracekit.errors import TracekitError
from tracekit.files import replaced, written
from tracekit.model.picture import Picture

SCHEMA = "tracekit.perfetto/1"
#: Threads of a process are numbered from its own number times this.
THREADS_OF_A_PROCESS = 10_000
EVENTS_AT_ONCE = 1000
#: Of host events of one thread a few overlap without nesting. Each is held against all lanes.
MOST_LANES = 100

Event = dict[str, Any]
#: Process, thread and start of the slice with each key.
Ends = dict[int, tuple[int, int, int]]
#: Starts and ends of slices.
Times = Iterable[tuple[int, int]]


def write_picture(picture: Picture, path: Path, *, is_named: bool = False) -> int:
    """Writes the whole file or nothing; returns how many bytes the JSON has unpacked.

    `is_named` is whether a user named the place: a pipe or a device there is written into, and a link is followed. At a
    place that tracekit chose, which may lie in a stranger's folder, all of these are replaced. Raises TracekitError
    where nothing can be written.
    """
    head = msgspec.json.encode({"schema": SCHEMA, "left out": picture.notes})
    events = _events(picture)
    first = b",\n".join(map(msgspec.json.encode, islice(events, EVENTS_AT_ONCE)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # No time and no name in it: the same picture is the same file.
        with (
            (written if is_named else replaced)(path) as file,
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed,
        ):
            size = packed.write(b'{"displayTimeUnit":"ns","tracekit":' + head + b',"traceEvents":[\n' + first)
            while some := list(islice(events, EVENTS_AT_ONCE)):
                size += packed.write(b",\n" + b",\n".join(map(msgspec.json.encode, some)))
            return size + packed.write(b"\n]}\n")
    except OSError as error:
        raise TracekitError(f"cannot write {path}: {error.strerror}; pass another path to --out") from None


def _events(picture: Picture) -> Iterator[Event]:
    ends: list[Ends] = []
    for number, panel in enumerate(picture.panels, 1):
        keyed: Ends = {}
        yield _about("process_name", number, 0, name=panel.name + (panel.about and f", {panel.about}"))
        yield _about("process_sort_index", number, 0, sort_index=number)
        thread = number * THREADS_OF_A_PROCESS
        for track in panel.tracks:
            lanes = (nested if track.nests else side_by_side)(track.slices.select("start_ns", "end_ns").iter_rows())
            for lane in range(max(lanes, default=-1) + 1):
                again = f" ({lane + 1})" if lane else ""
                yield _about("thread_name", number, thread + lane, name=f"/{panel.name}/{track.name}{again}")
                yield _about("thread_sort_index", number, thread + lane, sort_index=thread + lane)
            for (kind, name, start, end, details, key), lane in zip(track.slices.iter_rows(), lanes, strict=True):
                place = {"pid": number, "tid": thread + lane, "ts": start / 1000, "dur": (end - start) / 1000}
                said = {} if details is None else {"args": msgspec.Raw(details.encode())}
                yield {"ph": "X", "cat": kind, "name": name, **place, **said}
                if key is not None:
                    keyed[key] = number, thread + lane, start
            thread += max(lanes, default=-1) + 1
        for counter in panel.counters:
            shared = {"ph": "C", "name": f"{panel.name}: {counter.name}", "pid": number}
            for at, value in counter.points.iter_rows():
                yield {**shared, "ts": at / 1000, "args": {counter.unit: value}}
        ends.append(keyed)
    for number, (name, a_panel, a_key, b_panel, b_key) in enumerate(picture.arrows.iter_rows(), 1):
        # Perfetto drops an arrow that ends before it begins.
        begin, end = sorted((ends[a_panel][a_key], ends[b_panel][b_key]), key=lambda each: each[2])
        for phase, (process, thread, start) in (({"ph": "s"}, begin), ({"ph": "f", "bp": "e"}, end)):
            place = {"pid": process, "tid": thread, "ts": start / 1000}
            yield {**phase, "cat": picture.arrows_are, "name": name, "id": number, **place}


def _about(kind: str, process: int, thread: int, **said: Any) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": said}


def side_by_side(times: Times) -> list[int]:
    """The lane of each (start, end), in order of start: the first one that is free by then. In no lane do two share
    time."""
    lanes: list[int] = []
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for start, end in times:
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (max(end, start + 1), lane))
        lanes.append(lane)
    return lanes


def nested(times: Times) -> list[int]:
    """The lane of each (start, end), in order of start, the longer first: the first lane in which it lies wholly inside
    what is open, or in which nothing is. What fits into none of MOST_LANES shares the last, and Perfetto leaves it
    out."""
    lanes: list[int] = []
    open_until: list[list[int]] = []
    for start, end in times:
        for ends in open_until:
            # What is over by then is taken off.
            while ends and ends[-1] <= start:
                ends.pop()
        lane = next((at for at, ends in enumerate(open_until) if not ends or end <= ends[-1]), len(open_until))
        if lane == MOST_LANES:
            lanes.append(lane - 1)
            continue
        if lane == len(open_until):
            open_until.append([])
        open_until[lane].append(end)
        lanes.append(lane)
    return lanes
