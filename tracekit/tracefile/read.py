"""A trace file to a Trace."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracekit.errors import TracekitError
from tracekit.model.trace import Trace
from tracekit.tracefile import tables
from tracekit.tracefile.content import OnBytes, read_content
from tracekit.tracefile.decode import decode


def read_trace(path: Path, *, on_bytes: OnBytes | None = None) -> Trace:
    """Reads a Chrome/Kineto JSON trace, gzipped or plain, in the object or the array form.

    Of a damaged file every event that can be read is kept, the rest is counted in `skipped`. `on_bytes(done, total)`
    is told how much of the file has been read. Raises TracekitError when there is no such file, it is no trace, it has
    no events, or nothing of it can be read.
    """
    content, damaged = read_content(path, on_bytes)
    with collector_paused():
        decoded = decode(content, path)
        if not decoded.events:
            raise TracekitError(f"{path} has no events: nothing was recorded in it; record it again")
        filled = tables.fill_tables(decoded.events, decoded.skipped)
        activities = tables.frame(filled.activities, tables.ACTIVITY_SCHEMA)
        return Trace(
            path=str(path),
            events=len(decoded.events),
            bytes=len(content),
            skipped=dict(filled.skipped),
            unplaced=filled.unplaced,
            truncated=damaged or decoded.truncated,
            activities=activities,
            calls=tables.frame(filled.calls, tables.CALL_SCHEMA),
            host=tables.frame(filled.host, tables.HOST_SCHEMA),
            threads=tuple(filled.threads),
            devices=tables.list_devices({d.id: d.name for d in decoded.header.deviceProperties}, activities),
            allocations=filled.allocations,
            peak_allocated_bytes=filled.peak_allocated_bytes,
            record_flags=decoded.header.flags(),
            metadata=decoded.header.tracekit,
        )


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection inside: a million fresh tuples would set it off a hundred times and free nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
