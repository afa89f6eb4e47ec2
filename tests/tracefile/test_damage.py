"""Traces damaged in every way we know: read as far as they go, said to be damaged, never a traceback."""

import gzip
import json
import math
import random
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import fuzzed
from tests.traces import DATA, Json, analyze, make_call, make_kernel, make_op, make_span, write_trace

from tracekit.cli.main import main
from tracekit.comparison.looking import look_at
from tracekit.errors import TracekitError
from tracekit.model.analysis import Analysis
from tracekit.model.comparison import Side
from tracekit.model.trace import Trace
from tracekit.report.contract import analysis_json
from tracekit.tracefile import cache
from tracekit.tracefile.read import read_trace


def adding_up(trace: Trace, **options: Any) -> Analysis:
    """Its analysis, whose figures add up and can be written."""
    found = analyze(trace, cpu=True, **options)
    told = json.loads(analysis_json(look_at(Side("it", trace.path, found, None, None, None))))
    assert told["trace"]["events"] == trace.events
    if found.gpu and found.idle and found.kernels:
        assert found.gpu.busy_us + found.gpu.idle_us == pytest.approx(found.gpu.span_us)
        assert math.fsum(each.us for each in found.idle.causes) == pytest.approx(found.gpu.idle_us, abs=1e-3)
        assert math.fsum(each.total_us for each in found.kernels.by_family) == pytest.approx(found.kernels.total_us)
    return found  # type: ignore[no-any-return]


def analysis_of(folder: Path, content: bytes, name: str = "trace.json") -> Analysis | None:
    """None for one line that says what is wrong."""
    (folder / name).write_bytes(content)
    try:
        return adding_up(read_trace(folder / name))
    except TracekitError:
        return None


@fuzzed(12)
@given(st.data())
def test_one_bit_of_a_packed_file_flipped_never_goes_unsaid(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    packed = bytearray(gzip.compress(TEXT, mtime=0))
    # The first bytes say that it is packed at all, and when and by which system; behind them stands the content.
    packed[data.draw(st.integers(10, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = analysis_of(tmp_path_factory.getbasetemp(), bytes(packed), "trace.json.gz")
    assert found is None or any(each.severity == "error" for each in found.health)


@fuzzed(25)
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
    *("null", '"x"', "[]", "{}", "true", "1e999", "-1", '"5"', str(2**70), '""', "NaN", "-Infinity", "[[[[]]]]", "0.5")
]
FIELDS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "args.device", "args.stream", "args.correlation"]


@pytest.mark.parametrize("field", [*FIELDS, "args.bytes", "args.External id", "args.unknown"])
def test_a_wrong_type_in_any_field_costs_no_other_event(tmp_path: Path, field: str) -> None:
    event = json.loads(json.dumps(EVENT))
    place = event["args"] if field.startswith("args.") else event
    place[field.removeprefix("args.")] = "HERE"
    spoilt = [json.dumps(event).replace('"HERE"', value) for value in WRONG]

    def read(some: list[str]) -> Trace:
        events = ", ".join([*map(json.dumps, SOUND), *some, json.dumps(SOUND[-1])])
        (tmp_path / "trace.json").write_text(f'{{"traceEvents": [{events}]}}')
        return read_trace(tmp_path / "trace.json")

    lost = 0
    for value, each in zip(WRONG, spoilt, strict=True):
        trace = read([each])
        assert trace.activities.height in (2, 3), value
        # The two sound kernels; the event itself is gone for its own field's sake, and that is said.
        assert trace.activities.height == 3 or field in ("ph", "cat") or trace.skipped, value
        lost += 3 - trace.activities.height
    found = adding_up(read(spoilt))
    assert found.kernels is not None and found.kernels.count == 2 + len(WRONG) - lost
    assert not lost or field in ("ph", "cat", "name", "pid", "tid", "ts", "dur")
    assert not lost or field in ("ph", "cat") or any(each.severity == "error" for each in found.health)


READ = """
import resource, sys
from tracekit.errors import TracekitError
from tracekit.tracefile.read import read_trace
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        read_trace(path)
    except TracekitError:
        pass
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("text", ["x" * 100_000, "9" * 4000])
@pytest.mark.parametrize("field", ["pid", "tid", "ts", "args.device", "args.stream", "args.correlation", "args.bytes"])
def test_a_long_text_where_a_number_belongs_costs_its_own_length(tmp_path: Path, field: str, text: str) -> None:
    spans = [{**make_span(0, 9000), "pid": text if field == "pid" else pid} for pid in (100, 200)]
    calls = [make_call(i, i + 0.5, correlation=i) for i in range(1, 1000)]
    kernels = [make_kernel(i, i + 0.5, correlation=i) for i in range(1, 1000)]
    event = json.loads(json.dumps(kernels[500]))
    (event["args"] if field.startswith("args.") else event)[field.removeprefix("args.")] = text
    path = write_trace(tmp_path, [*spans, *calls, *kernels[:500], event, *kernels[501:]])
    tracemalloc.start()
    found = analyze(read_trace(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.kernels.count == len(kernels) - (field == "ts")
    # Once for each row it would be a hundred million bytes.
    assert peak < 32 << 20


EVERYWHERE = {
    "tracekit": {"HERE": {"a": ["HERE", {"HERE": 1}]}},
    "deviceProperties": [{"id": 0, "name": "HERE", "HERE": 0}],
    "HERE": "HERE",
    "traceEvents": [*SOUND, {**EVENT, "name": "HERE", "HERE": [{"HERE": "HERE"}], "args": {"HERE": "HERE"}}],
    "HERE as well": "HERE",
}


@pytest.mark.parametrize("lone", ["\\ud800", "\\udfff", "\\udc00\\ud800", "x\\uD9ABy"])
@pytest.mark.parametrize("order", [1, -1], ids=["around the events", "before and behind them"])
def test_half_a_surrogate_pair_in_keys_and_values_costs_nothing(tmp_path: Path, lone: str, order: int) -> None:
    spoilt = json.dumps(dict([*EVERYWHERE.items()][::order])).replace("HERE", lone)
    (tmp_path / "trace.json").write_text(spoilt)
    trace = read_trace(tmp_path / "trace.json")
    assert (trace.skipped, trace.activities.height) == ({}, 2)
    assert len(trace.metadata) == len(trace.devices) == 1
    # What was read can be written.
    cache.save(trace, tmp_path / "entry")
    assert cache.load(tmp_path / "entry", trace.path, "plain") is not None
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


def test_what_a_file_says_beside_its_events_takes_bounded_memory(tmp_path: Path) -> None:
    spoilt = {
        "blanks": (b'{"traceEvents": [', b"   ", b""),
        "before": (b'{"deviceProperties":[', b"{},", b'{}],"traceEvents":[]}'),
        "behind": (b'{"traceEvents":[],"tracekit":{"a":[', b"{},", b"{}]}}"),
        "instead": (b'{"zzz":[', b"{},", b"{}]}"),
    }
    paths = [tmp_path / f"{name}.json.zst" for name in spoilt]
    for path, (begin, filling, end) in zip(paths, spoilt.values(), strict=True):
        path.write_bytes(zstandard.compress(begin + filling * 20_000_000 + end))
    # A process that reads one after the other says by how much it had grown at most.
    ran = subprocess.run([sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, check=True)
    blanks, *others = map(int, ran.stdout.split())
    assert blanks < 75
    assert max(others) < 400


TEXT = gzip.decompress((DATA / "vit_reduce-overhead.json.gz").read_bytes())
MIDDLE = TEXT.index(b"},", len(TEXT) // 2) + 2
#: A kernel's name in the middle, where damage meets a string.
NAME = TEXT.index(b'"name"', MIDDLE) + 12
#: Where the trace's object ends.
END = TEXT.rindex(b"}")
KERNEL = re.compile(rb'("ph": "X", "cat": "kernel",.*?"args": \{)', re.DOTALL)
PACKED = gzip.compress(TEXT, mtime=0)


def put(at: int, by: bytes, length: int = 0) -> bytes:
    return TEXT[:at] + by + TEXT[at + length :]


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def in_each_kernel(argument: bytes) -> bytes:
    return KERNEL.sub(rb"\g<1>" + argument + b", ", TEXT)


#: What is promised of a damaged trace: `whole`, its figures are those of the sound one; `said`, what is missing is
#: said; `refused`, nothing of it can be read, in one line.
CORPUS: dict[str, dict[str, Callable[[], bytes]]] = {
    "said": {
        "cut-in-an-event.json": lambda: TEXT[: NAME + 3],
        "cut-between-events.json": lambda: TEXT[: MIDDLE - 1],
        "cut.json.gz": lambda: PACKED[: len(PACKED) // 2],
        "cut.json.zst": lambda: zstandard.compress(TEXT)[:-1000],
        "flipped-in-the-packed-data.json.gz": lambda: flipped(PACKED, 8_000),
        "flipped-bracket.json": lambda: flipped(TEXT, MIDDLE - 2),
        "flipped-quote.json": lambda: flipped(TEXT, TEXT.index(b'"', MIDDLE)),
        "noise.json": lambda: put(MIDDLE, random.Random(0).randbytes(2000), 2000),
        "zeros-in-a-string.json": lambda: put(NAME, bytes(4096), 4096),
        "bad-escape.json": lambda: put(NAME, b"\\q"),
        "deep-nesting.json": lambda: put(MIDDLE, b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b","),
        "never-closed.json": lambda: put(MIDDLE, b'{"ph":"X","name":"a",' * 5000),
        "more-digits-than-python-reads.json": lambda: put(MIDDLE, b'{"ts":' + b"1" * 5000 + b"},"),
        "stray-end-of-list.json": lambda: put(MIDDLE - 1, b"],", 1),
        "events-behind-the-list.json": lambda: put(MIDDLE - 1, b"]} {", 1),
        "two-lists.json": lambda: put(END, b', "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1}]'),
    },
    "whole and said": {
        "cut-behind-the-events.json": lambda: TEXT[: TEXT.rindex(b"]") + 2],
        "wrong-checksum.json.gz": lambda: flipped(PACKED, -6),
        "two-traces.json": lambda: TEXT + b"\n" + TEXT,
        "two-traces.json.gz": lambda: PACKED + PACKED,
        "behind-the-end.json": lambda: TEXT + b"garbage",
        "wrong-header.json": lambda: TEXT.replace(b'"deviceProperties": [', b'"deviceProperties": 5, "x": [', 1),
    },
    "whole": {
        "control-characters.json": lambda: put(NAME, b"\x01\x02\n"),
        "no-utf-8.json": lambda: put(NAME, b"\xff\xfe"),
        "nan-in-each-kernel.json": lambda: in_each_kernel(b'"occupancy": NaN, "x": -Infinity'),
        "duplicate-keys.json": lambda: in_each_kernel(b'"device": 9, "device": 9'),
        "blanks.json": lambda: put(MIDDLE, b" " * (1 << 22)),
    },
    "refused": {
        "utf-16.json": lambda: TEXT.decode().encode("utf-16"),
        "noise-alone.json.gz": lambda: b"\x1f\x8b" + random.Random(1).randbytes(5000),
        "blanks-alone.json.gz": lambda: gzip.compress(b"[" + b" " * (1 << 25)),
    },
}


FIGURES = ("gpu", "kernels", "launches", "copies")


def analyzed(path: Path) -> tuple[int, str, dict[str, Any]]:
    """Exit code, what was said, and the JSON; anything but a line of error is a failure here."""
    result = CliRunner().invoke(main, ["analyze", str(path), "--json", "-", "--no-cache"], catch_exceptions=True)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stderr, json.loads(result.stdout) if result.stdout else {}


def figures(found: dict[str, Any]) -> dict[str, Any]:
    """Without names: damage inside of one changes it, and may make one kernel's its own."""
    named = ("top", "unique", "by_family")
    return {key: {k: v for k, v in found[key].items() if k not in named} for key in FIGURES}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("sound") / "sound.json"
    path.write_bytes(TEXT)
    return figures(analyzed(path)[2])


@pytest.mark.parametrize(("promise", "name"), [(promise, name) for promise, some in CORPUS.items() for name in some])
def test_no_damaged_trace_gives_a_wrong_number_unsaid(
    tmp_path: Path, promise: str, name: str, sound: dict[str, Any]
) -> None:
    content = CORPUS[promise][name]()
    assert content != TEXT
    (tmp_path / name).write_bytes(content)
    code, said, found = analyzed(tmp_path / name)
    severities = {each["severity"] for each in found.get("health", ())}
    if promise == "refused":
        assert (code, found) == (1, {})
        assert said.startswith("error: ")
        return
    assert ("error" in severities) == (code == 1) == ("said" in promise), (code, found["health"])
    if "whole" in promise:
        assert figures(found) == sound
