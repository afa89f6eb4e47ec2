"""A run folder's recordings with what tracekit reads of them alone, packed with zstd: `python -m docs.making.trimming
RUN`.

Events of kinds that are not read (the arrows from launches to kernels) and arguments that are not read go; every other
event stays as it was recorded, so that every figure of the run's report but the size of its files stays too.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import zstandard
from msgspec.structs import replace

from tracekit import store
from tracekit.model.run import FormResult

#: The arguments of `tracekit.tracefile.events`.
READ = frozenset(
    ("device", "stream", "correlation", "Input Dims", "Input type", "Concrete Inputs", "Input Strides"),
)
ARROWS = "ac2g"


def trimmed(trace: dict[str, Any]) -> dict[str, Any]:
    """The trace with those events and arguments. What is no span stays whole."""
    return {**trace, "traceEvents": [_event(each) for each in trace["traceEvents"] if each.get("cat") != ARROWS]}


def _event(event: dict[str, Any]) -> dict[str, Any]:
    if event.get("ph") != "X" or "args" not in event:
        return event
    kept = {key: value for key, value in event["args"].items() if key in READ}
    others = {key: value for key, value in event.items() if key != "args"}
    return {**others, "args": kept} if kept else others


def unpacked(path: Path) -> bytes:
    packed = path.read_bytes()
    if path.suffix == ".zst":
        return zstandard.decompress(packed)
    return gzip.decompress(packed) if path.suffix == ".gz" else packed


def _form(folder: Path, form: FormResult) -> FormResult:
    recordings = []
    for recording in form.recordings:
        old = folder / recording.path
        text = json.dumps(trimmed(json.loads(unpacked(old))), separators=(",", ":"), ensure_ascii=False)
        old.unlink()
        new = old.with_name(old.name.partition(".")[0] + ".json.zst")
        new.write_bytes(zstandard.ZstdCompressor(level=22).compress(text.encode()))
        recordings.append(replace(recording, path=new.name, bytes=new.stat().st_size))
    return replace(form, recordings=tuple(recordings))


def main(folder: Path) -> None:
    run = store.load(folder)
    store.save(replace(run, forms=tuple(_form(folder, form) for form in run.forms)), folder)
    # One line: a number a line is a quarter of it.
    manifest = folder / store.MANIFEST
    manifest.write_bytes(msgspec.json.format(manifest.read_bytes(), indent=0) + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
