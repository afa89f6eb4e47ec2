"""Events to the columnar tables of a Trace."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from tracekit.model.trace import Device, Thread
from tracekit.tracefile.events import Arguments, Event, Identifier, Number

ACTIVITY_KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "memcpy": "memcpy",
    "memset": "memset",
}
HOST_KINDS = {
    "cpu_op": "op",
    "operator": "op",
    "user_annotation": "annotation",
    "python_function": "python",
    "overhead": "overhead",
}
#: Categories of host API calls: CUDA, and what other backends of Kineto write.
CALL_CATEGORIES = {
    "cuda_runtime",
    "cuda_driver",
    "runtime",
    "driver",
    "hip_runtime",
    "hip_driver",
    "xpu_runtime",
    "xpu_driver",
    "mtia_runtime",
    "privateuse1_runtime",
    "privateuse1_driver",
}

#: Longer than this is no duration but an overflow: 2**53 ns is 104 days.
LONGEST_US = 2**53 / 1e3

#: Nanoseconds since any origin must fit 64 bits.
LONGEST_TS_US = 2**62 / 1e3

#: Events beyond a silence of this length do not belong to the recording.
LONGEST_SILENCE_US = 3600e6

ACTIVITY_SCHEMA = {
    "kind": pl.String,
    "name": pl.String,
    "device": pl.Int64,
    "stream": pl.Int64,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "correlation": pl.Int64,
    "external_id": pl.Int64,
    "bytes": pl.Int64,
}
CALL_SCHEMA = {"name": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64, "thread": pl.Int32, "correlation": pl.Int64}
HOST_SCHEMA = {
    "kind": pl.String,
    "name": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "thread": pl.Int32,
    "external_id": pl.Int64,
}

NO_ARGUMENTS = Arguments()


@dataclass
class Tables:
    """The tables as they fill. `origin_us` is what times are counted from; what lies outside `within_us` is left out.
    `unplaced` counts the activities that name no device."""

    origin_us: int
    within_us: tuple[float, float]
    skipped: Counter[str]
    activities: list[tuple[Any, ...]] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    host: list[tuple[Any, ...]] = field(default_factory=list)
    threads: dict[Thread, int] = field(default_factory=dict)
    unplaced: int = 0
    allocations: int = 0
    peak_allocated_bytes: int | None = None

    def add(self, event: Event) -> None:
        """Files a complete event under its category; what tracekit has no use for is passed over in silence."""
        category = (event.cat or "").lower()
        if event.ph == "i" and event.name == "[memory]":
            self._add_allocation(event.args or NO_ARGUMENTS)
        if event.ph != "X":
            return
        if category in ACTIVITY_KINDS:
            self._add_activity(event, ACTIVITY_KINDS[category])
        elif category in CALL_CATEGORIES:
            self._add_call(event)
        elif category in HOST_KINDS:
            self._add_host(event, HOST_KINDS[category])

    def _add_activity(self, event: Event, kind: str) -> None:
        times = self._times(event)
        if times is None:
            return
        args = event.args or NO_ARGUMENTS
        device = _device(args.device if args.device is not None else event.pid)
        self.unplaced += device is None
        stream = _whole(args.stream if args.stream is not None else event.tid)
        correlation, external = _id(args.correlation), _whole(args.external_id)
        self.activities.append(
            (kind, event.name, device or 0, stream, *times, correlation, external, _whole(args.bytes))
        )

    def _add_call(self, event: Event) -> None:
        times = self._times(event)
        if times is not None:
            args = event.args or NO_ARGUMENTS
            self.calls.append((event.name, *times, self._thread(event), _id(args.correlation)))

    def _add_host(self, event: Event, kind: str) -> None:
        times = self._times(event)
        if times is not None:
            args = event.args or NO_ARGUMENTS
            self.host.append((kind, event.name, *times, self._thread(event), _whole(args.external_id)))

    def _add_allocation(self, args: Arguments) -> None:
        # c10::DeviceType: 0 is the CPU.
        if not args.device_type:
            return
        self.allocations += 1
        total = _whole(args.total_allocated)
        if total is not None:
            self.peak_allocated_bytes = max(self.peak_allocated_bytes or 0, total)

    def _times(self, event: Event) -> tuple[int, int] | None:
        """Start and end in whole nanoseconds since the origin; None, and counted, for an event without usable times."""
        reason = _fault(event)
        if not reason and not self.within_us[0] <= event.ts <= self.within_us[1]:  # type: ignore[operator]
            reason = "time far from all others"
        if reason:
            self.skipped[reason] += 1
            return None
        # Whole microseconds and the rest apart: a double that holds both has no digits left for nanoseconds.
        whole_us = math.floor(event.ts)  # type: ignore[arg-type]
        start_ns = (whole_us - self.origin_us) * 1000 + round((event.ts - whole_us) * 1000)  # type: ignore[operator]
        return start_ns, start_ns + round(event.dur * 1000)  # type: ignore[operator]

    def _thread(self, event: Event) -> int:
        return self.threads.setdefault(Thread(str(event.pid), str(event.tid)), len(self.threads))


def _fault(event: Event) -> str | None:
    if event.name is None:
        return "no name"
    if event.ts is None or not math.isfinite(event.ts) or abs(event.ts) > LONGEST_TS_US:
        return "no time"
    if event.dur is None or not math.isfinite(event.dur):
        return "no duration"
    if event.dur < 0:
        return "negative duration"
    return "absurd duration" if event.dur > LONGEST_US else None


def _whole(value: Identifier | Number | None) -> int | None:
    """An identifier as a number; None for a word, or for what fits no 64-bit column."""
    try:
        number = int(value) if value is not None else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and abs(number) < 2**63 else None


def _device(value: Identifier | None) -> int | None:
    """A device's number: as it is, or at the end of a name (`GPU 1`)."""
    number = _whole(value)
    if number is None and isinstance(value, str):
        found = re.search(r"(\d{1,4})\s*$", value)
        return int(found.group(1)) if found else None
    return number


def _id(value: Identifier | None) -> int | None:
    """A correlation id; 0 and less are what writers put where there is none."""
    number = _whole(value)
    return number if number is not None and number > 0 else None


def fill_tables(events: list[Event], skipped: Counter[str]) -> Tables:
    """Files every event; `skipped` grows by what had to be left out."""
    within_us = find_common_time([event for event in events if event.ph == "X" and not _fault(event)])
    tables = Tables(origin_us=math.floor(within_us[0]), within_us=within_us, skipped=skipped)
    for event in events:
        tables.add(event)
    return tables


def find_common_time(events: list[Event]) -> tuple[float, float]:
    """The stretch of time, from start to start, in which most events lie; (0, 0) without events.

    No recording is silent for an hour: events beyond such a silence have a broken clock (`ts` 0, say).
    """
    starts = np.array([event.ts for event in events], dtype=np.float64)
    ends = starts + np.array([event.dur for event in events], dtype=np.float64)
    if not len(starts):
        return 0.0, 0.0
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    breaks = np.flatnonzero(starts[1:] - reach[:-1] > LONGEST_SILENCE_US) + 1
    edges = np.concatenate(([0], breaks, [len(starts)]))
    largest = int(np.argmax(np.diff(edges)))
    return float(starts[edges[largest]]), float(starts[edges[largest + 1] - 1])


def frame(rows: list[tuple[Any, ...]], schema: dict[str, Any]) -> pl.DataFrame:
    """A table sorted by start, longer events first so that a parent stands before its children."""
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return table.sort(["start_ns", "end_ns"], descending=[False, True], maintain_order=True)


def list_devices(named: dict[int, str | None], activities: pl.DataFrame) -> tuple[Device, ...]:
    """The devices that did something, with their names where the trace states them."""
    return tuple(Device(id_, named.get(id_)) for id_ in sorted(activities["device"].unique()))
