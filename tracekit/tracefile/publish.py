"""A profiler's raw export made fit to keep: steps marked, tracekit's own facts added, the machine's paths taken out."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tracekit.errors import TracekitError
from tracekit.files import replaced

#: Top-level keys and event arguments that name the machine or its folders.
PRIVATE_KEYS = ("traceName", "host_name", "hostname")
PATH_ARGUMENTS = ("kernel_file",)


def publish(raw: Path, out: Path, *, metadata: Mapping[str, object], marks: Sequence[tuple[int, int]]) -> int:
    """Writes `raw` (plain Chrome JSON by torch.profiler) to `out` (gzipped) and removes it; returns the bytes written.

    `metadata` lands under the top-level key `tracekit`. `marks` are steps as Unix nanoseconds (begin, end): they become
    spans `tracekit.step#N` where the recording holds none itself. Raises TracekitError when `raw` is no trace.
    """
    try:
        document: dict[str, Any] = msgspec.json.decode(raw.read_bytes())
        events: list[dict[str, Any]] = document["traceEvents"]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise TracekitError(f"the profiler wrote {raw.name} in a form tracekit does not know") from None
    for key in PRIVATE_KEYS:
        document.pop(key, None)
    for event in events:
        _drop_folders(event)
    if not any(event.get("name") == "tracekit.step#0" for event in events):
        events.extend(_step_spans(document, events, marks))
    document["tracekit"] = dict(metadata)
    _write_gzip(msgspec.json.encode(document), out)
    raw.unlink()
    return out.stat().st_size


def _drop_folders(event: dict[str, Any]) -> None:
    arguments = event.get("args")
    if not isinstance(arguments, dict):
        return
    for key in PATH_ARGUMENTS:
        if isinstance(arguments.get(key), str):
            arguments[key] = os.path.basename(arguments[key])


def _step_spans(
    document: dict[str, Any], events: list[dict[str, Any]], marks: Sequence[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Spans on the thread that made the most API calls. Kineto's times are microseconds since `baseTimeNanoseconds`."""
    base_ns = int(document.get("baseTimeNanoseconds", 0))
    pid, tid = _launching_thread(events)
    for index, (begin_ns, end_ns) in enumerate(marks):
        yield {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"tracekit.step#{index}",
            "pid": pid,
            "tid": tid,
            "ts": (begin_ns - base_ns) / 1e3,
            "dur": (end_ns - begin_ns) / 1e3,
            "args": {"marked by": "the host's clock"},
        }


def _launching_thread(events: list[dict[str, Any]]) -> tuple[Any, Any]:
    counts: dict[tuple[Any, Any], int] = {}
    for event in events:
        if event.get("cat") in ("cuda_runtime", "cuda_driver"):
            thread = (event.get("pid"), event.get("tid"))
            counts[thread] = counts.get(thread, 0) + 1
    return max(counts, key=lambda thread: counts[thread], default=(0, 0))


def _write_gzip(data: bytes, out: Path) -> None:
    # No file name and no time inside: the same recording gives the same bytes.
    with (
        replaced(out) as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=9, mtime=0) as packed,
    ):
        packed.write(data)
