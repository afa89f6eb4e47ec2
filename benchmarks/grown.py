"""A large trace made of a real one: its events again and again, each time later and with ids of their own.

python benchmarks/grown.py tests/data/flux_eager.json.zst /tmp/1gb.json --megabytes 1000
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import zstandard
from isal import igzip

#: What must differ from copy to copy: times, and the ids that join launches with kernels, and arrows and operators.
SHIFTED = re.compile(rb'("ts"|"correlation"|"External id"|"Record function id"|"id"|"Ev Idx"): (\d+(?:\.\d+)?)')
EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
TIME = re.compile(rb'"ph": "X".*?"ts": (\d+\.?\d*), "dur": (\d+\.?\d*)', re.DOTALL)
#: More ids than a copy has.
IDS = 10_000_000


def read_text(source: Path) -> bytes:
    if source.suffix == ".zst":
        return zstandard.decompress(source.read_bytes())
    return igzip.open(source).read() if source.suffix == ".gz" else source.read_bytes()


def period_of(text: bytes) -> float:
    """How much later each copy is, in microseconds."""
    times = [(float(ts), float(dur)) for ts, dur in TIME.findall(text)]
    return max(ts + dur for ts, dur in times) - min(ts for ts, _ in times) + 1000


def grow(source: Path, out: Path, size: int) -> int:
    """Writes at least `size` bytes of JSON to `out`, gzipped if its name ends in `.gz`; returns the bytes of JSON."""
    text = read_text(source)
    return grow_text(text, out, size, period_of(text))


def grow_text(text: bytes, out: Path, size: int, period: float) -> int:
    """The same of a trace's text, each copy later by `period` microseconds."""
    begin = EVENTS.search(text)
    if begin is None:
        raise SystemExit(f"no trace to make {out} of")
    end = text.rindex(b"\n  ]") if b"\n  ]" in text else text.rindex(b"]")
    events = text[begin.end() : end].strip().rstrip(b",")
    written = 0
    with igzip.open(out, "wb", compresslevel=1) if out.suffix == ".gz" else out.open("wb") as file:
        for part in _parts(text[: begin.end()], events, text[end:], period, size):
            file.write(part)
            written += len(part)
    return written


def _parts(head: bytes, events: bytes, tail: bytes, period: float, size: int) -> Iterator[bytes]:
    yield head
    done, copy = len(head), 0
    while done + len(tail) < size:
        part = (b",\n  " if copy else b"\n  ") + _shifted(events, period * copy, IDS * copy)
        yield part
        done, copy = done + len(part), copy + 1
    yield tail


def _shifted(events: bytes, microseconds: float, ids: int) -> bytes:
    def shift(found: re.Match[bytes]) -> bytes:
        key, number = found.groups()
        if key == b'"ts"':
            return b"%s: %.3f" % (key, float(number) + microseconds)
        return b"%s: %d" % (key, int(float(number)) + ids)

    return SHIFTED.sub(shift, events) if ids else events


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("source", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--megabytes", type=int, default=1000)
    asked = arguments.parse_args()
    print(f"{grow(asked.source, asked.out, asked.megabytes * 10**6):,} bytes of JSON in {asked.out}")  # noqa: T201


if __name__ == "__main__":
    main()
