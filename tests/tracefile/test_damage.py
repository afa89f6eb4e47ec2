"""Traces damaged in every way we know: read as far as they go, said to be damaged, never a traceback."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.traces import DATA, Json, analyze, make_call, make_kernel, make_op, make_span, write_trace

from tracekit.comparison.comparing import look_at
from tracekit.errors import TracekitError
from tracekit.model.analysis import Analysis
from tracekit.model.comparison import Side
from tracekit.report.contract import analysis_json
from tracekit.tracefile import cache, read_trace

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
    *("null", '"x"', "[]", "{}", "true", "1e999", "-1", '"5"', str(2**70), '""', "NaN", "-Infinity", "[[[[]]]]", "0.5"),
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
    lost = {"ph", "cat", "name", "pid", "tid", "ts", "dur"}
    if found.kernels.count == 2:
        # The two sound kernels; the event itself is gone for its own field's sake, and that is said.
        assert field in lost
        assert damaged(found) or field in ("ph", "cat")
    else:
        assert found.kernels.count == 3


@pytest.mark.parametrize(("megabytes", "kernels"), [(10, 2), (100, 1)])
def test_a_name_of_megabytes_is_read_and_one_beyond_the_bound_is_counted(
    tmp_path: Path, megabytes: int, kernels: int
) -> None:
    huge = {**EVENT, "name": "k" * (megabytes * 1_000_000)}
    found = analysis_of(tmp_path, json.dumps({"traceEvents": [*SOUND, huge]}).encode())
    assert found is not None
    assert found.kernels.count == kernels
    assert damaged(found) == (kernels == 1)


READ = """
import resource, sys
from tracekit.errors import TracekitError
from tracekit.tracefile import cache, read_trace
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_trace(sys.argv[1])
except TracekitError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def grown_mib(path: Path) -> tuple[str, int]:
    """What a process that reads the file says, and by how much it grew."""
    ran = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    *said, grown = ran.stdout.splitlines()
    return "".join(said), int(grown)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_bomb_of_whitespace_is_given_up_in_little_memory(tmp_path: Path, pack: Any) -> None:
    (tmp_path / "bomb").write_bytes(pack(b'{"traceEvents": [' + b" " * (150 << 20)))
    assert (tmp_path / "bomb").stat().st_size < 1 << 20
    said, grown = grown_mib(tmp_path / "bomb")
    assert "no event of it can be read" in said
    assert grown < 75


@pytest.mark.parametrize("text", ["x" * 100_000, "9" * 100_000, "1 " * 50_000, "9" * 4000])
@pytest.mark.parametrize(
    "field", ["pid", "tid", "ts", "dur", "args.device", "args.stream", "args.correlation", "args.bytes"]
)
def test_a_long_text_where_a_number_belongs_costs_its_own_length(tmp_path: Path, field: str, text: str) -> None:
    spans = [{**make_span(0, 9000), "pid": text if field == "pid" else pid} for pid in (100, 200)]
    calls = [make_call(i, i + 0.5, correlation=i) for i in range(1, 3000)]
    kernels = [make_kernel(i, i + 0.5, correlation=i) for i in range(1, 3000)]
    event = json.loads(json.dumps(kernels[1000]))
    (event["args"] if field.startswith("args.") else event)[field.removeprefix("args.")] = text
    path = write_trace(tmp_path, [*spans, *calls, *kernels[:1000], event, *kernels[1001:]])
    tracemalloc.start()
    found = analyze(read_trace(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.kernels.count == len(kernels) - (field in ("ts", "dur"))
    # Once for each row it would be a gigabyte.
    assert peak < 64 << 20


LONE = ["\\ud800", "\\udfff", "\\udc00\\ud800", "x\\uD9ABy"]
NAMED = json.dumps(
    {
        "tracekit": {"HERE": {"a": ["HERE", {"HERE": 1}]}},
        "deviceProperties": [{"id": 0, "name": "HERE", "HERE": 0}],
        "HERE": "HERE",
        "traceEvents": [*SOUND, {**EVENT, "name": "HERE", "HERE": [{"HERE": "HERE"}], "args": {"HERE": "HERE"}}],
        "HERE as well": "HERE",
    }
)
BEHIND = json.dumps(
    {"traceEvents": SOUND, "tracekit": {"HERE": "HERE"}, "deviceProperties": [{"id": 0, "name": "HERE"}]}
)


@pytest.mark.parametrize("lone", LONE)
@pytest.mark.parametrize(("text", "place"), [(t, i) for t in (NAMED, BEHIND) for i in range(t.count("HERE"))])
def test_half_a_surrogate_pair_in_any_key_or_value_costs_nothing(
    tmp_path: Path, text: str, place: int, lone: str
) -> None:
    parts = text.split("HERE")
    spoilt = "HERE".join(parts[: place + 1]) + lone + "HERE".join(parts[place + 1 :])
    (tmp_path / "trace.json").write_text(spoilt)
    trace = read_trace(tmp_path / "trace.json")
    assert (trace.skipped, trace.activities.height) == ({}, 2 if text is NAMED else 1)
    assert len(trace.metadata) == len(trace.devices) == 1
    # What was read can be written.
    cache.save(trace, tmp_path / "entry")
    assert cache.load(tmp_path / "entry", trace.path) is not None
    assert analysis_of(tmp_path, spoilt.encode()) is not None


def test_whole_surrogate_pairs_and_what_only_looks_like_half_of_one_stay(tmp_path: Path) -> None:
    lone = json.dumps([make_kernel(0, 1, name="\ud800")])
    text = lone[:-1] + r', {"ph": "X", "cat": "kernel", "name": "\ud83d\ude00 \\ud800 \u00e9", "ts": 5, "dur": 1}]'
    (tmp_path / "trace.json").write_text(text)
    assert read_trace(tmp_path / "trace.json").activities["name"].to_list() == ["\ufffd", "\U0001f600 \\ud800 \u00e9"]


def test_a_header_of_nothing_but_lists_of_events_is_read_in_no_time_to_speak_of(tmp_path: Path) -> None:
    nested = b'{"traceEvents": []},' * 20_000
    seconds = time.process_time()
    assert analysis_of(tmp_path, b'{"a": [' + nested + b'{}], "traceEvents": []}') is None
    # All before each of them would be decoded again for it.
    assert time.process_time() - seconds < 10


@pytest.mark.parametrize(
    "text",
    [
        b'{"deviceProperties":[' + b"{}," * 20_000_000 + b'{}],"traceEvents":[]}',
        b'{"traceEvents":[],"tracekit":{"a":[' + b"{}," * 20_000_000 + b"{}]}}",
        b'{"zzz":[' + b"{}," * 20_000_000 + b"{}]}",
    ],
    ids=["before", "behind", "instead"],
)
def test_what_a_file_says_beside_its_events_takes_bounded_memory(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(text)
    assert grown_mib(path)[1] < 400
