"""A picture as a trace file for Perfetto: Chrome JSON, gzipped. Of one that is too large what is least missed goes
first, and is named.

Every track is one thread of its panel's process, or several where slices would overlap. Perfetto's arrows follow time:
where the second slice is the earlier one, the arrow begins there. It leaves out slices that overlap in a thread
and do not nest. Of a name like a path it shortens the thread's, not that of the track below it: a pattern finds the
track alone.
"""

import gzip
import heapq
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.files import replaced, written
from tracekit.model.picture import Panel, Picture

SCHEMA = "tracekit.perfetto/1"
#: Threads of a process are numbered from its own number times this.
THREADS_OF_A_PROCESS = 10_000
EVENTS_AT_ONCE = 1000
#: Of host events of one thread a few overlap without nesting. Each is held against all lanes.
MOST_LANES = 100
#: Perfetto's page reads JSON up to some 150 MB well; sizes are estimated, so there is some room.
MOST_BYTES = 140_000_000
#: What an event and a point of a curve take beside names and details, and what an arrow takes: no less than is written.
EVENT_BYTES, ARROW_BYTES, POINT_BYTES = 110, 160, 95
#: In JSON control characters are written as six, quotes and backslashes as two.
CONTROLS, QUOTED = r"[\x00-\x1f]", r'["\\]'
#: Host events shorter than this are hardly to be seen beside a step.
SHORT_NS = 5000
#: A cut in time leaves no more than this share, or it would not be worth another look.
MOST_KEPT = 0.95
#: What is left out first, of the host's tracks.
HOST_EVENTS = (
    ("Python functions", pl.col("kind") == "python"),
    (f"host events shorter than {SHORT_NS / 1000:g} us", pl.col("end_ns") - pl.col("start_ns") < SHORT_NS),
    ("what the host did", pl.lit(value=True)),
)

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


def slimmed(picture: Picture, most_bytes: int = MOST_BYTES) -> Picture:
    """The picture as it is if it is small enough; else without Python functions, then without short host events, then
    without host events at all, then cut in time. Notes say what was left out."""
    for left_out, found in HOST_EVENTS:
        if estimate_bytes(picture) <= most_bytes:
            return picture
        smaller = _with_tracks(picture, found)
        gone = _count(picture) - _count(smaller)
        picture = _noted(smaller, f"{left_out} ({gone:,} events)") if gone else picture
    if estimate_bytes(picture) <= most_bytes:
        return picture
    # Only the beginning is left, to the same moment on both sides.
    ends = [track.slices["end_ns"].max() for panel in picture.panels for track in panel.tracks]
    moment = max((end for end in ends if isinstance(end, int)), default=0)
    cut = picture
    # Events are not spread evenly over time, so one cut in proportion may not do.
    while (size := estimate_bytes(cut)) > most_bytes and moment:
        moment = int(moment * min(most_bytes / size, MOST_KEPT))
        cut = _with_tracks(picture, pl.col("start_ns") > moment, of_host=False)
        panels: list[Panel] = []
        for panel in cut.panels:
            curves = [replace(each, points=each.points.filter(pl.col("at_ns") <= moment)) for each in panel.counters]
            panels.append(replace(panel, counters=tuple(curves)))
        cut = replace(cut, panels=tuple(panels))
    return _noted(cut, f"events that start after {moment / 1e6:.3f} ms")


def estimate_bytes(picture: Picture) -> int:
    """What the picture takes as JSON, or a little more."""
    texts_of_arrows = pl.col("name").str.len_bytes() + len(picture.arrows_are.encode())
    size = picture.arrows.height * ARROW_BYTES + 2 * int(picture.arrows.select(texts_of_arrows.sum()).item())
    name = pl.col("name").str
    for panel in picture.panels:
        for track in panel.tracks:
            texts = track.slices.select(
                pl.col("name", "details").str.len_bytes().sum(),
                (5 * name.count_matches(CONTROLS)).sum().alias("controls"),
                name.count_matches(QUOTED).sum().alias("quoted"),
            )
            size += int(sum(texts.row(0))) + track.slices.height * EVENT_BYTES
        for counter in panel.counters:
            size += counter.points.height * (POINT_BYTES + len(json.dumps(f"{panel.name}: {counter.name}")))
    return size


def _count(picture: Picture) -> int:
    return sum(track.slices.height for panel in picture.panels for track in panel.tracks)


def _with_tracks(picture: Picture, left_out: pl.Expr, *, of_host: bool = True) -> Picture:
    """Without these slices of the host's tracks, or of all; without tracks that are empty now, and without arrows that
    lost an end."""
    panels: list[Panel] = []
    kept_keys = [pl.DataFrame(schema={"panel": pl.Int64, "key": pl.Int64})]
    for number, panel in enumerate(picture.panels):
        slices = [t.slices.filter(~left_out) if t.of_host or not of_host else t.slices for t in panel.tracks]
        tracks = [replace(track, slices=kept) for track, kept in zip(panel.tracks, slices, strict=True) if kept.height]
        panels.append(replace(panel, tracks=tuple(tracks)))
        number_of = pl.lit(number, dtype=pl.Int64)
        kept_keys += [t.slices.select(number_of.alias("panel"), "key").drop_nulls() for t in tracks]
    arrows, kept = picture.arrows, pl.concat(kept_keys)
    for side in ("a", "b"):
        arrows = arrows.join(
            kept, left_on=[f"{side}_panel", f"{side}_key"], right_on=["panel", "key"], how="semi", maintain_order="left"
        )
    return replace(picture, panels=tuple(panels), arrows=arrows)


def _noted(picture: Picture, left_out: str) -> Picture:
    return replace(picture, notes=(*picture.notes, f"omitted to keep Perfetto fast: {left_out}"))
