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
from tracekit.files import write_replaced
from tracekit.tracefile.columns import place_of
from tracekit.tracefile.source import opened
from tracekit.tracefile.unpack import unpacked

OUR_STEP = "tracekit.step#"
THEIR_STEP = "ProfilerStep#"
#: What HTA knows GPU work by, for each kind of ours.
THEIR_CATEGORIES = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}
#: Other events of the GPU, which keep their stream.
ON_THE_GPU = ("cuda_sync", "gpu_user_annotation")


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
        rename_steps = not _has_their_steps(events)
        mended = [_mended(event, rename_steps=rename_steps) for event in events]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError, RecursionError):
        raise TracekitError(f"{name} is damaged or no trace: `tracekit analyze` says what can be read of it") from None
    rest = {} if isinstance(document, list) else document
    told = {"schemaVersion": 1, "distributedInfo": {"rank": rank}, **rest, "traceEvents": mended}
    out = folder / f"rank{rank}.pt.trace.json.gz"
    if out.exists() and Path(name).exists() and out.samefile(name):
        raise TracekitError(f"{out} would overwrite what is read; name another folder")
    try:
        write_replaced(out, gzip.compress(msgspec.json.encode(told), compresslevel=6, mtime=0))
    except OSError as error:
        raise TracekitError(f"cannot write {out}: {error.strerror}; name another folder") from None
    return out


def _mended(event: dict[str, Any], *, rename_steps: bool) -> dict[str, Any]:
    name, arguments, category = event.get("name"), event.get("args"), event.get("cat")
    if rename_steps and isinstance(name, str) and name.startswith(OUR_STEP):
        event = {**event, "name": THEIR_STEP + name.removeprefix(OUR_STEP)}
    table, kind = (place_of(category) if isinstance(category, str) else None) or (None, "")
    if table == "activities":
        return {**event, "cat": THEIR_CATEGORIES[kind]}
    if isinstance(arguments, dict) and "stream" in arguments and category not in ON_THE_GPU:
        others = {key: value for key, value in arguments.items() if key != "stream"}
        event = {**event, "args": {**others, "launched on stream": arguments["stream"]}}
    return event


def _has_their_steps(events: list[Any]) -> bool:
    return any(isinstance(each, dict) and str(each.get("name")).startswith(THEIR_STEP) for each in events)
