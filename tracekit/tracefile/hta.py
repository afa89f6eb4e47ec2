"""A trace in a form that Holistic Trace Analysis reads rightly.

HTA takes every event with a stream for GPU work, and so Inductor's Triton launch events, which are the host's; and it
knows steps by the name `ProfilerStep#N` alone.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tracekit.errors import TracekitError
from tracekit.files import write_replaced
from tracekit.tracefile.columns import place_of
from tracekit.tracefile.decode import DECODE_ERRORS, last_end
from tracekit.tracefile.source import opened
from tracekit.tracefile.unpack import unpacked

#: What else marks steps, the first that is there; and what HTA knows.
OTHER_STEPS = ("tracekit.step#", "step#", "iteration#")
THEIR_STEP = "ProfilerStep#"
#: What HTA knows GPU work by, for each kind of ours.
THEIR_CATEGORIES = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}
#: Other events of the GPU, which keep their stream.
ON_THE_GPU = ("cuda_sync", "gpu_user_annotation")

#: A trace of more is refused: it is held as text twice, as it was and as it is written.
MOST_BYTES = 1 << 30
#: How much text is decoded at a time, objects taking up to 25 times as much, and how long an event, or what stands
#: around the events, may be.
STRETCH_BYTES = 1 << 20
LONGEST_BYTES = 1 << 26


def export_for_hta(place: Path | str, folder: Path, *, rank: int = 0) -> Path:
    """Writes the trace into `folder` under the name HTA looks for, and says where.

    Unlike reading, this holds the whole trace in memory. Raises TracekitError for one of more than `MOST_BYTES` as
    JSON, and for one that is damaged: HTA would not read it either.
    """
    with opened(place) as source, unpacked(source) as content:
        held: list[bytes] = []
        size = 0
        for piece in content.pieces:
            size += len(piece)
            if size > MOST_BYTES:
                raise TracekitError(
                    f"{source.name} holds over {MOST_BYTES:,} bytes of JSON, the limit of --hta; record fewer steps"
                )
            held.append(piece)
        name, text = source.name, b"".join(held)
    try:
        beside, events = _parted(text)
        step = _step_to_rename(events) if any(mark.encode() in text for mark in OTHER_STEPS) else None
        stretches = ([_mended(event, step) for event in some] for some in _stretches(events))
        mended = msgspec.Raw(b"[" + b",".join(msgspec.json.encode(some)[1:-1] for some in stretches if some) + b"]")
    except (*DECODE_ERRORS, KeyError, TypeError, AttributeError):
        raise TracekitError(f"{name} is damaged or not a trace: `tracekit analyze` lists the damage") from None
    document = {"schemaVersion": 1, "distributedInfo": {"rank": rank}, **beside, "traceEvents": mended}
    out = folder / f"rank{rank}.pt.trace.json.gz"
    if out.exists() and Path(name).exists() and out.samefile(name):
        raise TracekitError(f"{out} would overwrite an input; pass another folder")
    try:
        write_replaced(out, gzip.compress(msgspec.json.encode(document), compresslevel=6, mtime=0))
    except OSError as error:
        raise TracekitError(f"cannot write {out}: {error.strerror}; pass another folder") from None
    return out


def _parted(text: bytes) -> tuple[dict[str, Any], memoryview]:
    """What the file says beside its events, and the list of these as it stands there."""
    if text.lstrip()[:1] == b"[":
        return {}, memoryview(text.strip())
    document = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    events = memoryview(document.pop("traceEvents"))
    if len(text) - len(events) > LONGEST_BYTES:
        raise msgspec.DecodeError("what stands beside the events is too long")
    return {key: msgspec.json.decode(value) for key, value in document.items()}, events


def _stretches(events: memoryview) -> Iterator[list[Any]]:
    """The events, some at a time: objects of all of them take many times the memory of their text."""
    begin, length = 1, STRETCH_BYTES
    while begin + length < len(events):
        end = last_end(bytes(events[begin : begin + length]))
        try:
            some = msgspec.json.decode(b"[" + bytes(events[begin : begin + end]) + b"]") if end else []
        except DECODE_ERRORS:
            # It ends within a string or a nested list.
            end = None
        if end:
            yield some
            # Behind the comma.
            begin, length = begin + end + 1, STRETCH_BYTES
        elif length >= LONGEST_BYTES:
            raise msgspec.DecodeError("an event is too long")
        else:
            length *= 2
    yield msgspec.json.decode(b"[" + bytes(events[begin:]), type=list[Any])


def _step_to_rename(events: memoryview) -> str | None:
    """What marks the steps, where HTA does not know it."""
    names = (str(event.get("name")) for some in _stretches(events) for event in some if isinstance(event, dict))
    there = {name[: name.index("#") + 1] for name in names if name.startswith((THEIR_STEP, *OTHER_STEPS))}
    return None if THEIR_STEP in there else next((mark for mark in OTHER_STEPS if mark in there), None)


def _mended(event: dict[str, Any], step: str | None) -> dict[str, Any]:
    name, arguments, category = event.get("name"), event.get("args"), event.get("cat")
    if step and isinstance(name, str) and name.startswith(step):
        event = {**event, "name": THEIR_STEP + name.removeprefix(step)}
    table, kind = (place_of(category) if isinstance(category, str) else None) or (None, "")
    if table == "activities":
        return {**event, "cat": THEIR_CATEGORIES[kind]}
    if isinstance(arguments, dict) and "stream" in arguments and category not in ON_THE_GPU:
        others = {key: value for key, value in arguments.items() if key != "stream"}
        event = {**event, "args": {**others, "launched on stream": arguments["stream"]}}
    return event
