"""A profiler's raw export made fit to keep: steps marked, tracekit's own facts added, the machine's paths taken out."""

import gzip
import html
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tracekit.errors import TracekitError
from tracekit.files import replaced

#: Top-level keys and event arguments that name the machine or its folders.
PRIVATE_KEYS = ("traceName", "host_name", "hostname")
PATH_ARGUMENTS = ("kernel_file",)
#: Events that programs name, by `tracekit.region` too.
ANNOTATIONS = ("user_annotation", "gpu_user_annotation")


def publish(raw: Path, out: Path, *, metadata: Mapping[str, object], marks: Sequence[tuple[int, int]]) -> int:
    """Writes `raw` (plain Chrome JSON by torch.profiler) to `out` (gzipped) and removes it; returns the bytes written.

    `metadata` lands under the top-level key `tracekit`. `marks` are steps as Unix nanoseconds (begin, end): they become
    spans `tracekit.step#N` where the recording holds none itself. Raises TracekitError when `raw` is no trace.
    """
    try:
        document: dict[str, Any] = msgspec.json.decode(raw.read_bytes())
        events: list[dict[str, Any]] = document["traceEvents"]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise TracekitError(f"the profiler wrote {raw.name} in an unknown format; install torch 2.9 to 2.15") from None
    for key in PRIVATE_KEYS:
        document.pop(key, None)
    for event in events:
        arguments = event.get("args")
        if isinstance(arguments, dict):
            paths = {
                key: os.path.basename(arguments[key]) for key in PATH_ARGUMENTS if isinstance(arguments.get(key), str)
            }
            arguments.update(paths)
        if event.get("cat") in ANNOTATIONS and "&#" in event["name"]:
            event["name"] = html.unescape(event["name"])
    if not any(event.get("name") == "tracekit.step#0" for event in events):
        events += _step_spans(events, marks, int(document.get("baseTimeNanoseconds", 0)))
    document["tracekit"] = dict(metadata)
    # No file name and no time inside: the same recording gives the same bytes.
    with replaced(out) as file, gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=0) as packed:
        packed.write(msgspec.json.encode(document))
    raw.unlink()
    return out.stat().st_size


def _step_spans(events: list[dict[str, Any]], marks: Sequence[tuple[int, int]], base_ns: int) -> list[dict[str, Any]]:
    """Spans on the thread that made the most API calls. Kineto's times are microseconds since `baseTimeNanoseconds`."""
    callers = (each for each in events if each.get("cat") in ("cuda_runtime", "cuda_driver"))
    counts = Counter((each.get("pid"), each.get("tid")) for each in callers)
    pid, tid = max(counts, key=lambda thread: counts[thread], default=(0, 0))
    return [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"tracekit.step#{index}",
            "pid": pid,
            "tid": tid,
            "ts": (begin_ns - base_ns) / 1e3,
            "dur": (end_ns - begin_ns) / 1e3,
            "args": {"marked by": "the host's clock"},
        }
        for index, (begin_ns, end_ns) in enumerate(marks)
    ]
