"""A trace file to a Trace."""

from contextlib import closing
from pathlib import Path

from tracekit.errors import TracekitError
from tracekit.interpreter import collector_paused
from tracekit.model.trace import Thread, Trace
from tracekit.tracefile import cache
from tracekit.tracefile.columns import Columns
from tracekit.tracefile.decode import Decoding, decode_events, read_beginning
from tracekit.tracefile.events import RECORD_FLAGS, Detail, whole
from tracekit.tracefile.helpers import end_early, helpers_of
from tracekit.tracefile.source import Source, opened
from tracekit.tracefile.tables import build_tables, list_devices, read_distributed, read_signatures
from tracekit.tracefile.unpack import OnBytes, unpacked


def read_trace(
    place: Path | str,
    *,
    on_bytes: OnBytes | None = None,
    cache_folder: Path | None = None,
    shapes: bool = False,
    collectives: bool = False,
    processes: int = 1,
) -> Trace:
    """Reads a Chrome/Kineto JSON trace, plain or packed with gzip or zstd, in the object or the array form.

    `place` is a file, a folder with one trace in it, `-` for standard input, or, with the extra `remote`, the URL of a
    file (s3, gs, hf, https ...). It is read in pieces and never held as a whole. Of a damaged file every event that can
    be read is kept, the rest is counted in `skipped`. `on_bytes(done, total)` is told how much of the file has been
    read; the total is None where nobody knows it. With a `cache_folder` a large local trace is read from there if it
    was read before, and put there if not. With `shapes` the host events have columns for the inputs of operators
    (`INPUT_COLUMNS`), which takes longer; or, with `collectives`, activities and host events have columns for what
    collectives state. A large file of this machine is decoded by so many `processes` at most. Raises TracekitError when
    there is no such file, it is no trace, it has no events, or nothing of it can be read.
    """
    detail: Detail = "shapes" if shapes else "collectives" if collectives else "plain"
    with opened(place) as source:
        entry = cache.entry_of(source.path, cache_folder, detail) if cache_folder and source.path else None
        cached = cache.load(entry, source.name, detail) if entry else None
        if cached is not None:
            end_early(source.path, detail)
            return cached
        trace = _read(source, on_bytes, detail, processes)
    if entry and trace.bytes >= cache.SMALLEST_BYTES:
        cache.save_beside(trace, entry)
    return trace


def check_is_trace(path: Path) -> None:
    """Reads as far as the first events. Raises TracekitError when there is no such file, or it is no trace."""
    with opened(path) as source, unpacked(source) as content:
        read_beginning(content.pieces, Decoding(source.name))


def _read(source: Source, on_bytes: OnBytes | None, detail: Detail, processes: int) -> Trace:
    columns: Columns | None = None
    with collector_paused():
        if (helpers := helpers_of(source.path, detail, processes)) is not None:
            from tracekit.tracefile.together import decode_together

            decoding = Decoding(source.name, detail)
            with closing(helpers), unpacked(source, on_bytes) as content:
                columns = decode_together(content, decoding, helpers)
            source.stream.seek(0)
        if columns is None:
            decoding, columns = Decoding(source.name, detail), Columns(detail)
            with unpacked(source, on_bytes) as content:
                for events in decode_events(content.pieces, decoding):
                    columns.add(events)
    columns.finish()
    columns.skipped.update(decoding.skipped)
    if content.damaged and not decoding.truncated:
        columns.skipped["data with a wrong checksum"] += 1
    if not columns.events:
        if decoding.truncated or columns.skipped:
            raise TracekitError(f"{source.name} is damaged: no event can be read; copy or record it again")
        raise TracekitError(f"{source.name} has no events; record it again")
    tables, begin_us = build_tables(columns)
    header = decoding.header
    return Trace(
        path=source.name,
        events=columns.events,
        bytes=content.bytes,
        skipped=dict(columns.skipped),
        unplaced=columns.unplaced,
        truncated=decoding.truncated,
        **tables,
        threads=tuple(Thread(*map(str, pair)) for pair in columns.threads),
        devices=list_devices(header.deviceProperties, tables["activities"]),
        allocations=columns.allocations,
        peak_allocated_bytes=columns.peak_allocated_bytes,
        record_flags={flag: bool(getattr(header, flag)) for flag in RECORD_FLAGS},
        resolution_ns=columns.resolution_ns,
        metadata=header.tracekit,
        origin_ns=(whole(header.baseTimeNanoseconds) or 0) + begin_us * 1000,
        host_name=header.host_name if isinstance(header.host_name, str) else None,
        distributed=read_distributed(header),
        signatures=read_signatures(columns.signatures),
    )
