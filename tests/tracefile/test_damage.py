"""Traces damaged in every way we know: read as far as they go, said to be damaged, never a traceback."""

from __future__ import annotations

import gzip
import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.traces import DATA, Json, make_call, make_kernel, make_op, make_span

from tracekit.analysis import analyze
from tracekit.comparison.alone import look_at
from tracekit.errors import TracekitError
from tracekit.model.analysis import Analysis
from tracekit.model.comparison import Side
from tracekit.report.contract import analysis_json
from tracekit.tracefile import read_trace

REAL = DATA / "vit_reduce-overhead.json.gz"
TEXT = gzip.decompress(REAL.read_bytes())


def analysis_of(folder: Path, content: bytes, name: str = "trace.json") -> Analysis | None:
    """None for one line that says what is wrong; whatever is found must add up and be writable."""
    path = folder / name
    path.write_bytes(content)
    try:
        found = analyze(read_trace(path), cpu=True)
    except TracekitError:
        return None
    json.loads(analysis_json(look_at(Side(name, str(path), found, None, None, None))))
    if found.gpu and found.idle and found.kernels:
        assert found.gpu.busy_us + found.gpu.idle_us == pytest.approx(found.gpu.span_us)
        assert math.fsum(each.us for each in found.idle.causes) == pytest.approx(found.gpu.idle_us, abs=1e-3)
        assert math.fsum(each.total_us for each in found.kernels.by_family) == pytest.approx(found.kernels.total_us)
    return found


def damaged(found: Analysis) -> bool:
    return any(each.severity == "error" for each in found.health)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.37, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_cut_off(tmp_path: Path, share: float, pack: Any) -> None:
    whole = analysis_of(tmp_path, TEXT)
    assert whole is not None
    packed = pack(TEXT)
    found = analysis_of(tmp_path, packed[: int(len(packed) * share)])
    if found is not None and found.kernels and whole.kernels:
        assert damaged(found)
        assert found.kernels.count <= whole.kernels.count


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(TEXT) - 1), st.integers(0, 7))
def test_one_bit_of_the_text_flipped(tmp_path_factory: pytest.TempPathFactory, at: int, bit: int) -> None:
    spoilt = bytearray(TEXT)
    spoilt[at] ^= 1 << bit
    analysis_of(tmp_path_factory.getbasetemp(), bytes(spoilt))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_one_bit_of_a_packed_file_flipped_never_goes_unsaid(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    packed = bytearray(gzip.compress(TEXT, mtime=0))
    # The first bytes say that it is packed at all, and when and by which system; behind them stands the content.
    packed[data.draw(st.integers(10, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = analysis_of(tmp_path_factory.getbasetemp(), bytes(packed), "trace.json.gz")
    assert found is None or damaged(found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_a_stretch_of_noise(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    draw = random.Random(seed)
    at, length = draw.randrange(len(TEXT)), draw.randrange(1, 5000)
    analysis_of(tmp_path_factory.getbasetemp(), TEXT[:at] + draw.randbytes(length) + TEXT[at + length :])


@settings(max_examples=40, deadline=None)
@given(
    st.binary(max_size=500), st.sampled_from([b"", b"{", b"[", b'{"traceEvents": [', b"\x1f\x8b", b"\x28\xb5\x2f\xfd"])
)
def test_bytes_of_any_kind(tmp_path_factory: pytest.TempPathFactory, noise: bytes, begin: bytes) -> None:
    analysis_of(tmp_path_factory.getbasetemp(), begin + noise)


EVENT = make_kernel(10, 12, correlation=1)
SOUND: list[Json] = [
    make_span(0, 50),
    make_op(1, 5),
    make_call(2, 3, correlation=1),
    make_call(4, 5, correlation=2),
    make_kernel(20, 22, correlation=2),
]
WRONG = [
    "null",
    '"x"',
    "[]",
    "{}",
    "true",
    "1e999",
    "-1",
    '"5"',
    str(2**70),
    '""',
    "NaN",
    "-Infinity",
    "[[[[]]]]",
    "0.5",
]
FIELDS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "args.device", "args.stream", "args.correlation"]


@pytest.mark.parametrize("field", [*FIELDS, "args.bytes", "args.External id", "args.unknown"])
@pytest.mark.parametrize("value", WRONG)
def test_a_wrong_type_in_any_field_costs_no_other_event(tmp_path: Path, field: str, value: str) -> None:
    event = json.loads(json.dumps(EVENT))
    place = event["args"] if field.startswith("args.") else event
    place[field.removeprefix("args.")] = "HERE"
    text = json.dumps({"traceEvents": [*SOUND, event, *SOUND[-1:]]}).replace('"HERE"', value)
    found = analysis_of(tmp_path, text.encode())
    assert found is not None
    assert found.kernels is not None
    lost = {"ph", "cat", "name", "pid", "tid", "ts", "dur"}
    if found.kernels.count == 2:
        # The two sound kernels; the event itself is gone for its own field's sake, and that is said.
        assert field in lost
        assert damaged(found) or field in ("ph", "cat")
    else:
        assert found.kernels.count == 3


@pytest.mark.parametrize(
    "broken",
    [
        '{"ph": "X", "cat": "kernel", "name": "\\x", "ts": 1, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "a\nb", "ts": 1, "dur": NaN}',
        '{"ph": "X", "ph": "X", "ts": 1, "ts": 2}',
        '{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 1, "args": {"device": 0}',
        '{"ph": "X", "args": ' + "[" * 5000 + "]" * 5000 + "}",
        "12",
        '"words"',
        "null",
        "{}",
        "[]",
    ],
)
def test_one_broken_event_costs_no_other(tmp_path: Path, broken: str) -> None:
    parts = [json.dumps(each) for each in SOUND]
    text = '{"traceEvents": [' + ", ".join([*parts[:3], broken, *parts[3:]]) + "]}"
    found = analysis_of(tmp_path, text.encode())
    assert found is not None
    assert found.kernels is not None
    # An event of no category may be anything, and is of no use.
    assert damaged(found) or "cat" not in broken
    assert found.kernels.count >= 1


def test_a_name_of_a_hundred_megabytes_is_read_and_shown_short(tmp_path: Path) -> None:
    huge = {**EVENT, "name": "k" * 100_000_000}
    found = analysis_of(tmp_path, json.dumps({"traceEvents": [*SOUND, huge]}).encode())
    assert found is not None
    assert found.kernels is not None
    assert found.kernels.count == 2


READ = """
import resource, sys
from tracekit.errors import TracekitError
from tracekit.tracefile import read_trace
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_trace(sys.argv[1])
except TracekitError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_bomb_of_whitespace_is_given_up_in_little_memory(tmp_path: Path, pack: Any) -> None:
    # More than one event may be long, and three times what is allowed below.
    bomb = pack(b'{"traceEvents": [' + b" " * (300 << 20))
    assert len(bomb) < 1 << 20
    (tmp_path / "bomb").write_bytes(bomb)
    ran = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / "bomb")], capture_output=True, text=True, check=True
    )
    message, grown_mib = ran.stdout.splitlines()
    assert "no event of it can be read" in message
    assert int(grown_mib) < 100
