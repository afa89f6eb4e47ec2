"""A profiler's raw export made fit to keep: steps marked, tracekit's own facts added, the machine's paths taken out."""

import gzip
import html
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tracekit.errors import TracekitError
from tracekit.files import replaced
from tracekit.model.host_marks import Collection, HostMarks

#: Top-level keys that name the machine or its folders, and the argument of an event that does.
PRIVATE_KEYS = ("traceName", "host_name", "hostname")
PATH_ARGUMENT = "kernel_file"
#: Events that programs name, by `tracekit.region` too.
ANNOTATIONS = ("user_annotation", "gpu_user_annotation")
CALLS = ("cuda_runtime", "cuda_driver")
ON_THE_HOST = (*CALLS, "cpu_op", "user_annotation")
#: What torch calls a garbage collection where it records them itself.
COLLECTION = "Python GC"


def publish(raw: Path, out: Path, *, metadata: Mapping[str, object], marks: HostMarks) -> int:
    """Writes `raw` (plain Chrome JSON by torch.profiler) to `out` (gzipped) and removes it; returns the bytes written.

    `metadata` lands under the top-level key `tracekit`. Of `marks`, steps become spans `tracekit.step#N` where the
    recording holds none itself, and collections spans `Python GC`. Events of the session's start are left out: a trace
    that is read whole would begin with them. Raises TracekitError when `raw` is no trace.
    """
    try:
        document: dict[str, Any] = msgspec.json.decode(raw.read_bytes())
        recorded: list[dict[str, Any]] = document["traceEvents"]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise TracekitError(f"the profiler wrote {raw.name} in an unknown format; install torch 2.9 to 2.15") from None
    base_ns = int(document.get("baseTimeNanoseconds", 0))
    begin_us = (marks.begin_ns - base_ns) / 1e3
    # Metadata and instants are of the whole file, whenever they are.
    timed = ("X", "s", "f")
    events = [each for each in recorded if each.get("ph") not in timed or each["ts"] + each.get("dur", 0) >= begin_us]
    for key in PRIVATE_KEYS:
        document.pop(key, None)
    for event in events:
        arguments = event.get("args")
        if isinstance(arguments, dict):
            path = arguments.get(PATH_ARGUMENT)
            if isinstance(path, str):
                arguments[PATH_ARGUMENT] = os.path.basename(path)
        if event.get("cat") in ANNOTATIONS and "&#" in event["name"]:
            event["name"] = html.unescape(event["name"])
    spans = _collection_spans(events, marks.collections, base_ns)
    if not any(event.get("name") == "tracekit.step#0" for event in events):
        # On the thread that made the most API calls.
        counts = Counter((each.get("pid"), each.get("tid")) for each in events if each.get("cat") in CALLS)
        thread = max(counts, key=lambda thread: counts[thread], default=(0, 0))
        spans += [_span(f"tracekit.step#{index}", *step, thread, base_ns) for index, step in enumerate(marks.steps)]
    document["traceEvents"] = events + spans
    document["tracekit"] = dict(metadata)
    # No file name and no time inside: the same recording gives the same bytes.
    with replaced(out) as file, gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=0) as packed:
        packed.write(msgspec.json.encode(document))
    raw.unlink()
    return out.stat().st_size


def _collection_spans(
    events: list[dict[str, Any]], collections: tuple[Collection, ...], base_ns: int
) -> list[dict[str, Any]]:
    """Spans on the threads they happened on, which Kineto names by the system's number where operators are recorded,
    else by the lower half of pthread's, without its sign."""
    processes = {each.get("tid"): each.get("pid") for each in events if each.get("cat") in ON_THE_HOST}
    process = next(iter(processes.values()), 0)
    spans = []
    for each in collections:
        low = min(each.ident % 2**32, -each.ident % 2**32)
        thread = (process, low if low in processes else each.native_id)
        spans.append(_span(COLLECTION, each.begin_ns, each.end_ns, thread, base_ns))
    return spans


def _span(name: str, begin_ns: int, end_ns: int, thread: tuple[Any, Any], base_ns: int) -> dict[str, Any]:
    """Kineto's times are microseconds since `baseTimeNanoseconds`."""
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": name,
        "pid": thread[0],
        "tid": thread[1],
        "ts": (begin_ns - base_ns) / 1e3,
        "dur": (end_ns - begin_ns) / 1e3,
        "args": {"marked by": "the host's clock"},
    }
