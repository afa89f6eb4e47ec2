"""Events to columns, list by list: what is kept of a million events are arrays of numbers and each name once."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from typing import Literal, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracekit.tracefile.events import (
    MOST_DEVICES,
    NONE,
    SIGNATURE,
    Arguments,
    CollectiveArguments,
    Detail,
    Event,
    Identifier,
    ShapedArguments,
    device_number,
    trailing_number,
    whole,
)

TableName = Literal["activities", "calls", "host"]
Thing = TypeVar("Thing", bound=Hashable)
Ints = NDArray[np.int64]
#: Columns that not every table has.
Extra = dict[str, NDArray[np.int64] | NDArray[np.int32]]

#: What each table calls the kinds of its rows, by the categories that profilers of all ages and vendors write, in lower
#: case.
ACTIVITY_KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "memcpy": "memcpy",
    "memset": "memset",
    # What runs on Meta's MTIA and Enflame's GCU, as their branches of Kineto write it.
    "mtia_ccp_events": "kernel",
    "gcu_memcpy": "memcpy",
    "gcu_memset": "memset",
}
HOST_KINDS = {
    "cpu_op": "op",
    "operator": "op",
    "user_annotation": "annotation",
    "python_function": "python",
    "overhead": "overhead",
}
CALL_CATEGORIES = (
    *("cuda_runtime", "cuda_driver", "runtime", "driver", "hip_runtime", "hip_driver", "xpu_runtime", "xpu_driver"),
    *("mtia_runtime", "gcu_runtime", "gcu_driver", "glow_runtime", "hpu_op"),
    *("privateuse1_runtime", "privateuse1_driver"),
)

#: All that Chrome's format knows.
PHASES = frozenset("BEXiICbnestfPNODMVvRcSTpF()")

#: Longer than this is no duration but an overflow: 2**53 ns is 104 days.
LONGEST_US = 2**53 / 1e3
#: Up to here a double of microseconds is exact to a nanosecond.
EXACT_US = 2**43
#: Nanoseconds since any origin must fit 64 bits.
LONGEST_TS_US = 2**62 / 1e3

#: In the names of operators whose inputs are kept by value and with their strides too: a convolution's stride and
#: padding give its output, how its data lie in memory the kernels it may get, and a flag what attention has to compute.
VALUED = ("conv", "attention")
#: A stride of 0, of a tensor that is repeated by `expand`: in memory it is smaller than it seems.
REPEATED = re.compile(rb"\b0\b")

#: What no JSON text holds.
BETWEEN_TEXTS = b"\0"

NO_ARGUMENTS = Arguments()
NO_SHAPES = ShapedArguments()
NO_COLLECTIVE = CollectiveArguments()


@cache
def place_of(category: str | None) -> tuple[TableName, str] | None:
    """The table and the kind of a category's events; None for those tracekit has no use for."""
    name = (category or "").lower()
    if name in ACTIVITY_KINDS:
        return "activities", ACTIVITY_KINDS[name]
    if name in HOST_KINDS:
        return "host", HOST_KINDS[name]
    return ("calls", "call") if name in CALL_CATEGORIES else None


class Numbered(dict[Thing, int]):
    """Each thing once, numbered as they came."""

    def __missing__(self, key: Thing) -> int:
        number = self[key] = len(self)
        return number

    def of(self, things: Iterable[Thing]) -> NDArray[np.int32]:
        return np.fromiter(map(self.__getitem__, things), dtype=np.int32)


class Block(Struct):
    """Events of one kind from one list. Times: `whole_us` is the start's whole microseconds, `rest_ns` what is left of
    it, and `long_ns` the duration: one double holds no nanoseconds since boot."""

    kind: str
    names: NDArray[np.int32]
    whole_us: Ints
    rest_ns: Ints
    long_ns: Ints
    more: Extra


class Begun(Struct):
    """What has begun on a thread and not ended, in order, and how many of each name."""

    events: list[Event] = field(default_factory=list)
    _names: Counter[str | None] = field(default_factory=Counter)

    def begin(self, event: Event) -> None:
        self._names[event.name] += 1
        self.events.append(event)

    def end(self, name: str | None) -> tuple[Event | None, list[Event]]:
        """What ends, and what was begun since then and has lost its end; None where nothing of that name was begun.
        What has no name ends whatever began last, and is ended by any name."""
        lost: list[Event] = []
        while self.events and (name is None or self._names[name] or self._names[None]):
            event = self.events.pop()
            self._names[event.name] -= 1
            if name is None or event.name in (name, None):
                return event, lost
            lost.append(event)
        return None, lost


class Columns(Struct):
    """The tables as they grow, with what is read in more `detail`."""

    detail: Detail = "plain"
    inputs: Numbered[bytes] = field(default_factory=Numbered)  # of JSON texts, with `BETWEEN_TEXTS` where several
    signatures: Numbered[tuple[bytes, ...]] = field(
        default_factory=Numbered
    )  # of JSON texts, in the order of SIGNATURE
    names: Numbered[str | None] = field(default_factory=Numbered)
    threads: Numbered[tuple[Identifier | None, Identifier | None]] = field(default_factory=Numbered)  # pid and tid
    tables: dict[TableName, list[Block]] = field(default_factory=lambda: {"activities": [], "calls": [], "host": []})
    skipped: Counter[str] = field(default_factory=Counter)
    events: int = 0
    unplaced: int = 0
    allocations: int = 0
    peak_allocated_bytes: int | None = None
    #: What the times are exact to: a double of microseconds since 1970 has no room for nanoseconds.
    resolution_ns: float = 1.0
    #: Whether some event begins in one and ends in another.
    paired: bool = False
    _open: dict[Hashable, Begun] = field(default_factory=lambda: defaultdict(Begun))

    def add(self, events: list[Event]) -> None:
        """Files complete events under their categories; what tracekit has no use for is passed over in silence."""
        self.events += len(events)
        by_category: dict[str | None, list[Event]] = defaultdict(list)
        for event in events:
            by_category[event.cat].append(event)
        paired = bool(self._open)
        for category, some in by_category.items():
            place = place_of(category)
            if place is None:
                self._add_allocations([event for event in some if event.ph == "i" and event.name == "[memory]"])
                paired = paired or any(event.ph in ("B", "E") for event in some)
                continue
            complete = [event for event in some if event.ph == "X"]
            self._add_block(place, complete)
            if len(complete) < len(some):
                paired = True
                unknown = sum(1 for event in some if event.ph not in PHASES)
                self.skipped.update({"of no known phase": unknown} if unknown else {})
        if paired:
            self.paired = True
            # In the order of the file: an end has no category, and belongs to the last beginning of its thread.
            self._add_pairs([event for event in events if event.ph in ("B", "E")])

    def append(self, later: Columns) -> None:
        """Adds what was made of the events behind these, and uses it up. Nothing begins in the ones and ends in the
        others."""
        names = self.names.of(later.names)
        numbers: dict[str, NDArray[np.int32]] = {
            "thread": self.threads.of(later.threads),
            "signature": self.signatures.of(later.signatures),
            "inputs": self.inputs.of(later.inputs),
        }
        numbers["grid"] = numbers["inputs"]
        for table, blocks in later.tables.items():
            for block in blocks:
                block.names = names[block.names]
                for key in numbers.keys() & block.more.keys():
                    # What states no signature has none.
                    own = block.more[key]
                    block.more[key] = np.where(own >= 0, numbers[key][own], own) if len(numbers[key]) else own
            self.tables[table] += blocks
        self.skipped.update(later.skipped)
        self.events += later.events
        self.unplaced += later.unplaced
        self.allocations += later.allocations
        peaks = [each for each in (self.peak_allocated_bytes, later.peak_allocated_bytes) if each is not None]
        self.peak_allocated_bytes = max(peaks, default=None)
        self.resolution_ns = max(self.resolution_ns, later.resolution_ns)

    def finish(self) -> None:
        """All events are there: what began and never ended is counted."""
        for begun in self._open.values():
            self._count_lost(begun.events)
        self._open.clear()

    def _add_pairs(self, pairs: list[Event]) -> None:
        """`B` and `E` of a thread belong together as brackets do, whatever stands between them; an end that has a name
        belongs to the last beginning of that name, and what was begun since then has lost its own."""
        ended: dict[tuple[TableName, str], list[Event]] = defaultdict(list)
        for event in pairs:
            begun_here = self._open[event.pid, event.tid]
            if event.ph == "B":
                begun_here.begin(event)
                continue
            begun, lost = begun_here.end(event.name)
            self._count_lost(lost)
            place = place_of((begun or event).cat)
            begin_us, end_us = number(begun.ts if begun else None), number(event.ts)
            if begun is None or begin_us is None or end_us is None:
                # An end need not name its category: it may be of what is counted.
                if place is not None or (begun or event).cat is None:
                    self.skipped["an end without a beginning"] += 1
            elif place is not None:
                begun.dur = end_us - begin_us
                begun.args = begun.args or event.args
                ended[place].append(begun)
        for place, some in ended.items():
            self._add_block(place, some)

    def _count_lost(self, events: Iterable[Event]) -> None:
        lost = sum(1 for event in events if place_of(event.cat))
        if lost:
            self.skipped["begun and never ended"] += lost

    def _add_block(self, place: tuple[TableName, str], events: list[Event]) -> None:
        events, starts, durations = self._usable(events)
        if not events:
            return
        table, kind = place
        whole_us = np.floor(starts)
        if float(starts.max()) > EXACT_US and (whole_us != starts).any():
            self.resolution_ns = max(self.resolution_ns, 1000 * float(np.spacing(starts.max())))
        names = self.names.of([event.name for event in events])
        rest_ns, long_ns = (np.rint(each * 1000).astype(np.int64) for each in (starts - whole_us, durations))
        block = Block(kind, names, whole_us.astype(np.int64), rest_ns, long_ns, self._more(table, events))
        self.tables[table].append(block)

    def _more(self, table: TableName, events: list[Event]) -> Extra:
        more = self._collectives(events) if self.detail == "collectives" and table != "calls" else {}
        if table == "host":
            more |= self._shapes(events) if self.detail == "shapes" else {}
            return {"thread": self._threads(events), **more}
        arguments = [event.args or NO_ARGUMENTS for event in events]
        correlation = identifiers([each.correlation for each in arguments])
        # 0 and less are what writers put where there is no correlation id.
        correlation = np.where(correlation > 0, correlation, NONE)
        if table == "calls":
            return {"thread": self._threads(events), "correlation": correlation}
        stream = identifiers([each.stream for each in arguments])
        if (missing := stream == NONE).any():
            # Of an activity that does not state its stream the thread is one, by its number or a name that ends in one.
            lanes = identifiers([trailing_number(event.tid) for event in events])
            stream = np.where(missing, lanes, stream)
        return {
            "device": self._devices(events, arguments),
            "stream": stream,
            "correlation": correlation,
            "bytes": identifiers([each.bytes for each in arguments]),
            **more,
        }

    def _shapes(self, events: list[Event]) -> Extra:
        """The numbers in `inputs` of what each operator's inputs are, the four texts of `INPUT_COLUMNS` in one."""
        shaped = [event.args if isinstance(event.args, ShapedArguments) else NO_SHAPES for event in events]
        names = {event.name or "" for event in events}
        # Values and strides of few operators: of most they are never asked for, and of many no two are alike.
        valued = {name for name in names if any(part in name for part in VALUED)}
        told = (
            (each.dims, each.dtypes, each.values, each.strides)
            if event.name in valued
            else (each.dims, each.dtypes, b"", each.strides)
            if REPEATED.search(each.strides)
            else (each.dims, each.dtypes)
            for event, each in zip(events, shaped, strict=True)
        )
        return {"inputs": self.inputs.of(map(BETWEEN_TEXTS.join, told))}

    def _collectives(self, events: list[Event]) -> Extra:
        """The number in `signatures` of what each states of a collective, NONE where it states nothing, its number in
        the sequence of its group, the operator around it, and of a kernel how many blocks it has."""
        stated = [event.args if isinstance(event.args, CollectiveArguments) else NO_COLLECTIVE for event in events]
        # Of a kernel's name only that of a collective is worth keeping.
        named = [bool(each.collective or each.group) for each in stated]
        signatures = [
            self.signatures[tuple(bytes(getattr(each, key)) for key in SIGNATURE)] if some else NONE
            for each, some in zip(stated, named, strict=True)
        ]
        sequence = [bytes(each.sequence) for each in stated]
        return {
            "signature": np.array(signatures, dtype=np.int64),
            "sequence": np.array([int(text) if text.isdigit() and len(text) < 16 else NONE for text in sequence]),
            "external": identifiers([each.external for each in stated]),
            "grid": self.inputs.of(bytes(each.grid) for each in stated),
        }

    def _threads(self, events: list[Event]) -> NDArray[np.int32]:
        pids, tids = [event.pid for event in events], [event.tid for event in events]
        if pids.count(pids[0]) == len(pids) and tids.count(tids[0]) == len(tids):
            return np.full(len(events), self.threads[pids[0], tids[0]], dtype=np.int32)
        return self.threads.of(zip(pids, tids, strict=True))

    def _devices(self, events: list[Event], arguments: list[Arguments]) -> Ints:
        """The device of each activity: its argument, else its process; 0, and counted, where neither names one."""
        devices = identifiers([each.device for each in arguments])
        for i in np.flatnonzero((devices < 0) | (devices >= MOST_DEVICES)).tolist():
            stated = arguments[i].device
            found = device_number(stated if stated not in (None, NONE) else events[i].pid)
            self.unplaced += found is None
            devices[i] = found or 0
        return devices

    def _usable(self, events: list[Event]) -> tuple[list[Event], NDArray[np.float64], NDArray[np.float64]]:
        """The events that can be placed in time, their starts and durations; the others are counted by reason."""
        starts, durations = _doubles([event.ts for event in events]), _doubles([event.dur for event in events])
        named = np.array([event.name is not None for event in events], dtype=bool)
        # What is no number compares as False.
        good = np.ones(len(events), dtype=bool)
        for reason, sound in {
            "no name": named,
            "no time": np.abs(starts) <= LONGEST_TS_US,
            "no duration": np.isfinite(durations),
            "negative duration": durations >= 0,
            "absurd duration": durations <= LONGEST_US,
        }.items():
            # Each event under the first of its faults.
            if not sound.all() and (count := int((good & ~sound).sum())):
                self.skipped[reason] += count
            good &= sound
        if good.all():
            return events, starts, durations
        return [event for event, keep in zip(events, good, strict=True) if keep], starts[good], durations[good]

    def _add_allocations(self, events: list[Event]) -> None:
        for event in events:
            args = event.args or NO_ARGUMENTS
            # c10::DeviceType: 0 is the CPU.
            if not args.device_type:
                continue
            self.allocations += 1
            total = whole(args.total_allocated)
            if total is not None:
                self.peak_allocated_bytes = max(self.peak_allocated_bytes or 0, total)


def _doubles(numbers: Sequence[Identifier | None]) -> NDArray[np.float64]:
    """Missing numbers, words, and such as no double holds, become NaN."""
    try:
        return np.array(numbers, dtype=np.float64)
    except (OverflowError, ValueError):
        return np.array([number(each) for each in numbers], dtype=np.float64)


def number(value: Identifier | None) -> float | None:
    """A time, also one in words; None for what is none."""
    try:
        return float(value) if value is not None else None
    except (ValueError, OverflowError):
        return None


def identifiers(values: Sequence[Identifier | None]) -> Ints:
    """As numbers; NONE for a word, a fraction, for what fits no 64-bit column, and for what is missing."""
    # The type is asked for first: numpy would make room in each row for the longest text of any.
    if set(map(type, values)) <= {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            # Some number fits no column; the others do.
            pass
    return np.array([NONE if (found := whole(value)) is None else found for value in values], dtype=np.int64)
