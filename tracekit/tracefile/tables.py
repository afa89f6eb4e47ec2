"""Columns to the tables of a Trace: one order, one origin of time, names in place of their numbers."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import polars as pl

from tracekit.model.bounded import MOST, MOST_RANKS
from tracekit.model.trace import INPUT_COLUMNS, CollectiveSignature, Device, Distributed
from tracekit.tracefile.columns import BETWEEN_TEXTS, Block, Columns, TableName
from tracekit.tracefile.events import NONE, SIGNATURE, Detail, DeviceProperties, Header, device_number, whole

#: Events beyond a silence of this length do not belong to the recording.
LONGEST_SILENCE_US = 3600e6

SCHEMAS: dict[TableName, dict[str, type[pl.DataType]]] = {
    "activities": {
        "kind": pl.String,
        "name": pl.String,
        "device": pl.Int64,
        "stream": pl.Int64,
        "start_ns": pl.Int64,
        "end_ns": pl.Int64,
        "correlation": pl.Int64,
        "bytes": pl.Int64,
    },
    "calls": {"name": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64, "thread": pl.Int32, "correlation": pl.Int64},
    "host": {"kind": pl.String, "name": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64, "thread": pl.Int32},
}
#: Columns more of activities and host events that were read with what collectives state.
COLLECTIVE_COLUMNS: dict[str, type[pl.DataType]] = {
    "signature": pl.Int64,
    "sequence": pl.Int64,
    "external": pl.Int64,
    "grid": pl.String,
}


def schemas(detail: Detail) -> dict[TableName, dict[str, type[pl.DataType]]]:
    """The columns of each table, of a trace that was read in this detail."""
    of_collectives = COLLECTIVE_COLUMNS if detail == "collectives" else {}
    of_inputs = dict.fromkeys(INPUT_COLUMNS, pl.String) if detail == "shapes" else {}
    return {
        "activities": {**SCHEMAS["activities"], **of_collectives},
        "calls": SCHEMAS["calls"],
        "host": {**SCHEMAS["host"], **of_collectives, **of_inputs},
    }


def build_tables(columns: Columns) -> tuple[dict[TableName, pl.DataFrame], int]:
    """The three tables, each sorted by start, longer events first so that a parent stands before its children; and the
    file's whole microsecond that their times are counted from.

    Events whose clock is broken are left out and counted in `columns.skipped`. The blocks of `columns` are used up.
    """
    begin_us, end_us = find_common_time([block for blocks in columns.tables.values() for block in blocks])
    names = pl.Series(list(columns.names), dtype=pl.String)
    texts = [text.decode("utf-8", errors="replace").split(BETWEEN_TEXTS.decode()) for text in columns.inputs]
    # What is no list was written by something else than the profiler.
    inputs = [
        pl.Series([some[at] if some[at:] and some[at].startswith("[") else None for some in texts], dtype=pl.String)
        for at in range(len(INPUT_COLUMNS))
    ]
    built: dict[TableName, pl.DataFrame] = {}
    for table, schema in schemas(columns.detail).items():
        blocks, columns.tables[table] = columns.tables[table], []
        if not blocks:
            built[table] = pl.DataFrame(schema=schema)
            continue
        whole_us = np.concatenate([block.whole_us for block in blocks])
        far = (whole_us < begin_us) | (whole_us > end_us)
        starts = np.where(far, 0, whole_us - begin_us) * 1000 + np.concatenate([block.rest_ns for block in blocks])
        kinds = pl.Series([block.kind for block in blocks], dtype=pl.String)
        found = {
            "kind": kinds.gather(np.repeat(np.arange(len(blocks)), [len(block.names) for block in blocks])),
            "name": names.gather(np.concatenate([block.names for block in blocks])),
            "start_ns": pl.Series(starts),
            "end_ns": pl.Series(starts + np.concatenate([block.long_ns for block in blocks])),
        }
        for key in blocks[0].more:
            values = np.concatenate([block.more[key] for block in blocks])
            series, missing = pl.Series(values), values == NONE
            found[key] = series.set(pl.Series(missing), None) if missing.any() else series
        for numbers, keys in {"inputs": INPUT_COLUMNS, "grid": ("grid",)}.items():
            if numbers in found:
                found |= {key: inputs[at].gather(found[numbers]) for at, key in enumerate(keys)}
        frame = pl.DataFrame({name: found[name].cast(dtype) for name, dtype in schema.items()})
        if far.any():
            columns.skipped["time far from all others"] += int(far.sum())
            frame = frame.filter(~far)
        built[table] = frame.sort(["start_ns", "end_ns"], descending=[False, True], maintain_order=True)
    return built, begin_us


def find_common_time(blocks: list[Block]) -> tuple[int, int]:
    """The whole microseconds of the first and the last start among the events that belong together.

    No recording is silent for an hour: events beyond such a silence have a broken clock (`ts` 0, say), and the larger
    part counts. (0, 0) without events.
    """
    if not blocks:
        return 0, 0
    first = min(int(block.whole_us.min()) for block in blocks)
    last = max(int(block.whole_us.max()) for block in blocks)
    if last - first <= LONGEST_SILENCE_US:
        return first, last
    starts = np.concatenate([block.whole_us for block in blocks])
    ends = starts + np.concatenate([block.long_ns for block in blocks]) // 1000
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    breaks = np.flatnonzero(starts[1:] - reach[:-1] > LONGEST_SILENCE_US) + 1
    edges = np.concatenate(([0], breaks, [len(starts)]))
    largest = int(np.argmax(np.diff(edges)))
    return int(starts[edges[largest]]), int(starts[edges[largest + 1] - 1])


def list_devices(stated: Iterable[DeviceProperties], activities: pl.DataFrame) -> tuple[Device, ...]:
    """The devices that did something, with their names where the trace states them."""
    named = {device_number(each.id): str(each.name) for each in stated if each.name is not None}
    return tuple(Device(id_, named.get(id_)) for id_ in sorted(activities["device"].unique()))


def read_signatures(stated: Iterable[tuple[bytes, ...]]) -> tuple[CollectiveSignature, ...]:
    """What collectives state, from the JSON they state it in; None for what is missing or makes no sense."""
    signatures = []
    for each in stated:
        found: dict[str, Any] = {key: _plain(text) for key, text in zip(SIGNATURE, each, strict=True)}
        for key in ("collective", "dtype", "group"):
            found[key] = str(found[key]) if found[key] not in (None, "") else None
        for key in ("elements_in", "elements_out"):
            found[key] = _count(found[key])
        for key in ("split_in", "split_out"):
            found[key] = _counts(found[key])
        for key in ("source", "target", "rank"):
            found[key] = _count(found[key], MOST_RANKS - 1)
        found["group_size"] = _count(found["group_size"], MOST_RANKS) or None
        found["group_ranks"] = _counts(found["group_ranks"], MOST_RANKS - 1)
        signatures.append(CollectiveSignature(**found))
    return tuple(signatures)


def _plain(text: bytes) -> object:
    """The value of a JSON text; None for what is no JSON."""
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None


def _count(value: object, most: int = MOST) -> int | None:
    """A whole number from 0 to `most`; None for anything else, such as the -1 that stands for nobody."""
    number = whole(value)
    return number if number is not None and 0 <= number <= most else None


def _counts(value: object, most: int = MOST) -> tuple[int, ...]:
    """A list, which Kineto writes as text (`"[0, 1]"`); empty where it is cut off (`"[0, 1, ...]"`) or no list."""
    listed = _plain(value.encode()) if isinstance(value, str) else value
    numbers = [_count(each, most) for each in listed] if isinstance(listed, list) else []
    return tuple(each for each in numbers if each is not None) if None not in numbers else ()


def read_distributed(header: Header) -> Distributed | None:
    """What the file says of the job it is a rank of; None where it says nothing."""
    stated = header.distributedInfo
    if not isinstance(stated, dict):
        return None
    rank, size = whole(stated.get("rank")), whole(stated.get("world_size"))
    if rank is None or size is None or not 0 <= rank < size:
        return None
    groups: dict[str, tuple[int, ...]] = {}
    purposes: dict[str, str] = {}
    listed = stated.get("pg_config")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and "pg_name" in each:
            name, purpose = str(each["pg_name"]), each.get("pg_desc")
            groups[name] = _counts(each.get("ranks"), MOST_RANKS - 1)
            if isinstance(purpose, str):
                purposes[name] = purpose
    backend = stated.get("backend")
    return Distributed(rank, size, backend if isinstance(backend, str) else None, groups, purposes)
