"""A real trace, damaged in every way we know. `python -m tests.tracefile.corpus FOLDER` writes them as files."""

from __future__ import annotations

import gzip
import random
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import zstandard
from tests.traces import DATA

#: What is promised of a damaged trace: `whole`, its figures are those of the sound one; `said`, what is missing is
#: said; `refused`, nothing of it can be read, in one line.
Promise = Literal["whole", "said", "whole and said", "refused"]

TEXT = gzip.decompress((DATA / "vit_reduce-overhead.json.gz").read_bytes())
MIDDLE = TEXT.index(b"},", len(TEXT) // 2) + 2
#: A kernel's name in the middle, where damage meets a string.
NAME = TEXT.index(b'"name"', MIDDLE) + 12
KERNEL = re.compile(rb'("ph": "X", "cat": "kernel",.*?"args": \{)', re.DOTALL)


@dataclass(frozen=True)
class Damaged:
    name: str
    promise: Promise
    content: Callable[[], bytes]


def _replaced(at: int, length: int, by: bytes) -> bytes:
    return TEXT[:at] + by + TEXT[at + length :]


def _flipped(content: bytes, at: int, bit: int = 1) -> bytes:
    return content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]


def _in_each_kernel(argument: bytes) -> bytes:
    found, count = KERNEL.subn(rb"\g<1>" + argument + b", ", TEXT)
    assert count > 100
    return found


def _second_list() -> bytes:
    end = TEXT.rindex(b"}")
    return TEXT[:end] + b', "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}]}'


def _first_half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _noise() -> bytes:
    return _replaced(MIDDLE, 2000, random.Random(0).randbytes(2000))


CORPUS = (
    Damaged("cut-in-an-event.json", "said", lambda: TEXT[: NAME + 3]),
    Damaged("cut-between-events.json", "said", lambda: TEXT[: MIDDLE - 1]),
    Damaged("cut-behind-the-events.json", "whole and said", lambda: TEXT[: TEXT.rindex(b"]") + 2]),
    Damaged("cut.json.gz", "said", lambda: _first_half(gzip.compress(TEXT, mtime=0))),
    Damaged("cut.json.zst", "said", lambda: zstandard.compress(TEXT)[:-1000]),
    Damaged("wrong-checksum.json.gz", "whole and said", lambda: _flipped(gzip.compress(TEXT, mtime=0), -6)),
    Damaged("flipped-in-the-packed-data.json.gz", "said", lambda: _flipped(gzip.compress(TEXT, mtime=0), 8_000)),
    Damaged("flipped-bracket.json", "said", lambda: _flipped(TEXT, MIDDLE - 2)),
    Damaged("flipped-quote.json", "said", lambda: _flipped(TEXT, TEXT.index(b'"', MIDDLE))),
    Damaged("noise.json", "said", _noise),
    Damaged("zeros-in-a-string.json", "said", lambda: _replaced(NAME, 4096, b"\0" * 4096)),
    Damaged("bad-escape.json", "said", lambda: _replaced(NAME, 0, b"\\q")),
    Damaged("half-a-surrogate-pair.json", "whole", lambda: _replaced(NAME, 0, b"\\ud800")),
    Damaged("control-characters.json", "whole", lambda: _replaced(NAME, 0, b"\x01\x02\n")),
    Damaged("no-utf-8.json", "whole", lambda: _replaced(NAME, 0, b"\xff\xfe")),
    Damaged("nan-in-each-kernel.json", "whole", lambda: _in_each_kernel(b'"occupancy": NaN, "x": -Infinity')),
    Damaged("deep-nesting.json", "said", lambda: _replaced(MIDDLE, 0, b'{"a":' * 5000 + b"1" + b"}" * 5000 + b",")),
    Damaged("never-closed.json", "said", lambda: _replaced(MIDDLE, 0, b'{"ph":"X","name":"a",' * 20_000)),
    Damaged(
        "more-digits-than-python-reads.json", "said", lambda: _replaced(MIDDLE, 0, b'{"ts":' + b"1" * 5000 + b"},")
    ),
    Damaged("stray-end-of-list.json", "said", lambda: _replaced(MIDDLE - 1, 1, b"],")),
    Damaged("events-behind-the-list.json", "said", lambda: _replaced(MIDDLE - 1, 1, b"]} {")),
    Damaged("two-lists.json", "said", _second_list),
    Damaged("two-traces.json", "whole and said", lambda: TEXT + b"\n" + TEXT),
    Damaged("two-traces.json.gz", "whole and said", lambda: gzip.compress(TEXT) + gzip.compress(TEXT)),
    Damaged("behind-the-end.json", "whole and said", lambda: TEXT + b"garbage"),
    Damaged("duplicate-keys.json", "whole", lambda: _in_each_kernel(b'"device": 9, "device": 9')),
    Damaged(
        "wrong-header.json",
        "whole and said",
        lambda: TEXT.replace(b'"deviceProperties": [', b'"deviceProperties": 5, "x": [', 1),
    ),
    Damaged("blanks.json", "whole", lambda: _replaced(MIDDLE, 0, b" " * (1 << 22))),
    Damaged("utf-16.json", "refused", lambda: TEXT.decode().encode("utf-16")),
    Damaged("empty.json", "refused", lambda: b""),
    Damaged("no-trace.json", "refused", lambda: b'{"events": []}'),
    Damaged("noise-alone.json.gz", "refused", lambda: b"\x1f\x8b" + random.Random(1).randbytes(5000)),
    Damaged("blanks-alone.json.gz", "refused", lambda: gzip.compress(b"[" + b" " * (1 << 26))),
)


def write(folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for each in CORPUS:
        (folder / each.name).write_bytes(each.content())
        yield folder / each.name


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)  # noqa: T201
