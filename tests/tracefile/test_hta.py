import contextlib
import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from tests.traces import Json, make_call, make_kernel, make_op, make_span, write_trace

from tracekit.errors import TracekitError
from tracekit.tracefile import hta
from tracekit.tracefile.hta import export_for_hta


def exported(place: Path, folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(gzip.decompress(export_for_hta(place, folder).read_bytes()))
    return told


@pytest.mark.parametrize("stretch", [64, 1000, 1 << 20])
def test_all_events_are_there_however_many_are_read_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretch: int
) -> None:
    monkeypatch.setattr(hta, "STRETCH_BYTES", stretch)
    # What looks like the end of an event within a name and within an argument.
    odd = make_op(1, 2, name='},{"ph": "X"', shapes=[{"a": 1}, {"a": 2}], words="}, {")
    events = [make_span(0, 10), *([odd, make_call(1, 2), make_kernel(3, 4)] * 50), {}]
    whole = exported(write_trace(tmp_path, events, distributedInfo={"rank": 5}, more=[1.5, None]), tmp_path / "out")
    assert whole["traceEvents"] == [{**make_span(0, 10), "name": "ProfilerStep#0"}, *events[1:]]
    del whole["traceEvents"]
    assert whole == {"schemaVersion": 1, "distributedInfo": {"rank": 5}, "more": [1.5, None]}


@pytest.mark.parametrize("events", [[], [{}], [make_kernel(0, 1)]])
@pytest.mark.parametrize("as_list", [True, False])
def test_few_events_or_none_as_a_list_or_an_object(tmp_path: Path, events: list[Json], as_list: bool) -> None:
    path = tmp_path / "few.json"
    path.write_text(json.dumps(events if as_list else {"traceEvents": events}) + "\n")
    assert exported(path, tmp_path / "out")["traceEvents"] == events


def test_steps_of_the_profilers_own_keep_ours_from_being_renamed(tmp_path: Path) -> None:
    both = [make_span(0, 10), make_span(0, 10, name="ProfilerStep#3")]
    assert exported(write_trace(tmp_path, both), tmp_path / "out")["traceEvents"] == both


def test_a_user_s_own_steps_are_renamed_unless_ours_are_there(tmp_path: Path) -> None:
    for names, step in (
        (("iteration#2", "work#1"), "ProfilerStep#2"),
        (("tracekit.step#0", "step#3"), "ProfilerStep#0"),
    ):
        events = [make_span(0, 10, name=name) for name in names]
        told = exported(write_trace(tmp_path, events), tmp_path / "out")["traceEvents"]
        assert [event["name"] for event in told] == [step, names[1]]


@pytest.mark.parametrize(
    "text",
    [
        b'{"traceEvents": [' + b"{}," * 200_000 + b"{}]}",
        b'{"traceEvents": [{"args": [' + b"{}," * 200_000 + b"{}]}]}",
        b'{"x": [' + b"{}," * 200_000 + b'{}], "traceEvents": [{}]}',
        b'{"traceEvents": [' + b" " * (16 << 20),
    ],
)
def test_objects_of_many_events_are_never_in_memory_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setattr(hta, "STRETCH_BYTES", 1 << 10)
    monkeypatch.setattr(hta, "LONGEST_BYTES", 1 << 14)
    monkeypatch.setattr(hta, "MOST_BYTES", 8 << 20)
    path = tmp_path / "many.json"
    path.write_bytes(text)
    tracemalloc.start()
    with contextlib.suppress(TracekitError):
        export_for_hta(path, tmp_path / "out")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All of them would take 25 times the text.
    assert peak < 10 * len(text)
    assert (tmp_path / "out").exists() is text.startswith(b'{"traceEvents": [{},')


DEEP = b"[" * 100_000
SPOILT = [
    b'{"traceEvents": [{"args": ' + DEEP + b"]" * 100_000 + b"}]}",
    b'{"traceEvents": [{"args": ' + DEEP,
    b'{"x": ' + DEEP + b"]" * 100_000 + b', "traceEvents": []}',
    DEEP,
    b"{" * 100_000,
    b'{"traceEvents": {}}',
    b'{"traceEvents": "x"}',
    b'{"traceEvents": [1]}',
    b'{"traceEvents": [null]}',
    b'{"traceEvents": [{"a\\ud800": 1}]}',
    b'{"traceEvents": [{"ts": 1e999}]}',
    b'{"traceEvents": [{}], "a": "\\ud800"}',
    b'{"traceEvents": [{}],}',
    b'{"traceEvents": [{}]} x',
    b"{}",
    b"5",
    b"\xff",
]


@pytest.mark.parametrize("spoilt", SPOILT)
def test_what_hta_would_not_read_is_one_line(tmp_path: Path, spoilt: bytes) -> None:
    path = tmp_path / "spoilt.json"
    path.write_bytes(spoilt)
    with pytest.raises(TracekitError, match="is damaged or"):
        export_for_hta(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
