from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.traces import DATA, make_call, make_kernel, make_op, make_trace, write_trace

from tracekit.errors import TracekitError
from tracekit.tracefile import read_trace

LATE = 4377057133204.634


def test_nanoseconds_survive_microseconds_counted_since_boot(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, [make_kernel(LATE, LATE + 1.5), {**make_kernel(LATE + 2, LATE + 3), "dur": 0.333}])
    assert (trace.activities["end_ns"] - trace.activities["start_ns"]).to_list() == [1500, 333]
    assert (trace.activities["start_ns"].diff().drop_nulls()).to_list() == [2000]


def test_an_event_at_zero_is_set_aside_and_costs_the_others_nothing(tmp_path: Path) -> None:
    late = 4999999999999.0
    kernels = [make_kernel(0, 1), *({**make_kernel(0, 0), "ts": late + i / 1000, "dur": 0.001} for i in range(1000))]
    trace = make_trace(tmp_path, kernels)
    starts = trace.activities["start_ns"].to_list()
    assert [start - starts[0] for start in starts] == list(range(1000))
    assert trace.skipped == {"time far from all others": 1}


def test_a_long_pause_that_an_event_fills_is_no_silence(tmp_path: Path) -> None:
    hour = 3600e6
    events = [make_op(0, 2 * hour, name="wait"), make_kernel(1, 2), make_kernel(2 * hour, 2 * hour + 1)]
    trace = make_trace(tmp_path, events)
    assert (trace.activities.height, trace.skipped) == (2, {})


def test_a_bad_argument_costs_itself_and_not_its_event(tmp_path: Path) -> None:
    kernel = make_kernel(0, 1, correlation=3)
    events = [{**kernel, "args": {**kernel["args"], "bytes": [1]}}, {**make_kernel(2, 3), "args": []}]
    trace = make_trace(tmp_path, events)
    assert trace.activities["correlation"].to_list() == [3, None]
    assert trace.skipped == {}


def test_what_lies_within_a_broken_event_is_no_event_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    broken = '{"ph": "X", "cat": "kernel", "dur": oops, "args": {"name": "inner", "ph": "X", "ts": 1, "dur": 1}}'
    good = '{"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": 1, "pid": 0, "tid": 7}'
    path.write_text('{"traceEvents": [' + f"{broken}, {good}]}}")
    trace = read_trace(path)
    assert (trace.events, dict(trace.skipped)) == (1, {"invalid JSON": 1})


def test_triton_host_events_are_not_gpu_work(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, [make_op(0, 5, name="triton_poi_fused_add_0", stream=7, kernel_file="x.py")])
    assert trace.activities.height == 0
    assert trace.host["kind"].to_list() == ["op"]


def test_words_may_stand_where_numbers_are_expected(tmp_path: Path) -> None:
    events = [
        {**make_call(0, 1, correlation=5), "pid": "Spans", "tid": "main thread"},
        {**make_kernel(2, 3), "pid": "GPU", "tid": "stream 7", "args": {"correlation": "5", "stream": "seven"}},
    ]
    trace = make_trace(tmp_path, events)
    assert trace.threads[0].pid == "Spans"
    assert trace.activities["correlation"].to_list() == [5]
    assert trace.activities["stream"].to_list() == [7]


def test_a_bare_array_of_events_is_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "array.json"
    path.write_text(json.dumps([make_kernel(0, 1)]))
    assert read_trace(path).activities.height == 1


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"ts": None}, "no time"),
        ({"ts": 2e17}, "no time"),
        ({"dur": -1}, "negative duration"),
        ({"dur": 1e300}, "absurd duration"),
        ({"dur": None}, "no duration"),
        ({"name": None}, "no name"),
    ],
)
def test_an_event_without_usable_times_is_left_out_and_counted(
    tmp_path: Path, broken: dict[str, object], reason: str
) -> None:
    trace = make_trace(tmp_path, [make_kernel(0, 1), {**make_kernel(2, 3), **broken}])
    assert trace.activities.height == 1
    assert trace.skipped == {reason: 1}


def test_a_truncated_file_gives_what_is_left_of_it(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_kernel(i, i + 0.5) for i in range(10)])
    path.write_bytes(path.read_bytes()[:-100])
    trace = read_trace(path)
    assert trace.truncated
    assert 7 <= trace.activities.height < 10
    assert trace.skipped == {}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text.replace('"B"', '"B\\x"'), "invalid JSON"),
        (lambda text: text.replace('"ts": 20', '"ts": NaN'), "no time"),
        (lambda text: text.replace('"dur": 5,', '"dur": Infinity,'), "no duration"),
        (lambda text: text.replace('"ts": 20', '"ts": "noon"'), "no time"),
        (lambda text: text.replace('"ts": 20', '"ts": [20]'), "wrong type"),
    ],
)
def test_one_broken_event_costs_only_itself(tmp_path: Path, damage: object, reason: str) -> None:
    kernels = [make_kernel(0, 5.5, name="A"), make_kernel(20, 25, name="B"), make_kernel(40, 45.5, name="C")]
    path = write_trace(tmp_path, kernels)
    damaged = damage(path.read_text())  # type: ignore[operator]
    assert damaged != path.read_text()
    path.write_text(damaged)
    trace = read_trace(path)
    assert trace.activities["name"].to_list() == ["A", "C"]
    assert trace.skipped == {reason: 1}
    assert not trace.truncated


def test_control_characters_in_a_name_are_read(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_kernel(0, 1, name="A")])
    path.write_text(path.read_text().replace('"A"', '"A\x01\n"'))
    assert read_trace(path).activities["name"].to_list() == ["A\x01\n"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello", "is not a trace"),
        (b'{"a": 1}', 'no "traceEvents"'),
        (b'{"a": ', "is not a trace"),
        (b'{"traceEvents": []}', "has no events"),
        (b'{"traceEvents": [{"ph": "X", "na', "no event of it can be read"),
        (b"\x1f\x8b\x08\x00garbage", "nothing can be read"),
        (b"\x28\xb5\x2f\xfd\x00", "zstd"),
        (b"\xff\xfe\x00\x01", "is not a trace"),
        (b"[1, 2, 3]", "no event of it can be read"),
    ],
)
def test_what_is_no_trace_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(TracekitError) as caught:
        read_trace(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match="is not there"):
        read_trace(tmp_path / "nothing.json")
    with pytest.raises(TracekitError, match=r"without a trace or a run\.json"):
        read_trace(tmp_path)


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = DATA / "flux_eager.json.gz"
    read_trace(path, on_bytes=lambda done, total: told.append((done, total)))
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    assert len(told) > 1


def test_what_the_recording_says_of_itself_is_kept() -> None:
    trace = read_trace(DATA / "vit_eager.json.gz")
    assert trace.devices[0].name == "NVIDIA H200"
    assert trace.record_flags["record_shapes"]
    assert not trace.record_flags["with_stack"]


def test_our_own_facts_are_read_also_from_a_damaged_file(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_kernel(0, 1), make_kernel(2, 3)], tracekit={"form": "eager"})
    assert read_trace(path).metadata == {"form": "eager"}
    path.write_text(path.read_text().replace('"ts": 2', '"ts": NaN'))
    assert read_trace(path).metadata == {"form": "eager"}
