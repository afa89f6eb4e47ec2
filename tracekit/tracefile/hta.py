"""A trace in a form that Holistic Trace Analysis reads rightly.

HTA takes every event with a stream for GPU work, and so Inductor's Triton launch events, which are the host's; and it
knows steps by the name `ProfilerStep#N` alone.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec

from tracekit.errors import TracekitError
from tracekit.tracefile.source import opened
from tracekit.tracefile.unpack import unpacked

OUR_STEP = "tracekit.step#"
THEIR_STEP = "ProfilerStep#"
GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation")


def export_for_hta(place: Path | str, folder: Path, *, rank: int = 0) -> Path:
    """Writes the trace into `folder` under the name HTA looks for, and says where.

    Unlike reading, this holds the whole trace in memory. Raises TracekitError for a trace that is damaged: HTA would
    not read it either.
    """
    with opened(place) as source, unpacked(source) as content:
        text = b"".join(content.pieces)
        name = source.name
    try:
        document: Any = msgspec.json.decode(text)
        events = document if isinstance(document, list) else document["traceEvents"]
        mended = [_mended(event) for event in events]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        raise TracekitError(f"{name} is damaged or no trace: `tracekit analyze` says what can be read of it") from None
    rest = {} if isinstance(document, list) else document
    told = {"schemaVersion": 1, "distributedInfo": {"rank": rank}, **rest, "traceEvents": mended}
    out = folder / f"rank{rank}.pt.trace.json.gz"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        out.write_bytes(gzip.compress(msgspec.json.encode(told), compresslevel=6, mtime=0))
    except OSError as error:
        raise TracekitError(f"cannot write {out}: {error.strerror}; name another folder") from None
    return out


def _mended(event: dict[str, Any]) -> dict[str, Any]:
    name, arguments = event.get("name"), event.get("args")
    if isinstance(name, str) and name.startswith(OUR_STEP):
        event = {**event, "name": THEIR_STEP + name.removeprefix(OUR_STEP)}
    if isinstance(arguments, dict) and "stream" in arguments and event.get("cat") not in GPU_CATEGORIES:
        others = {key: value for key, value in arguments.items() if key != "stream"}
        event = {**event, "args": {**others, "launched on stream": arguments["stream"]}}
    return event
