"""What a run publishes. Whatever this room writes goes through no link (of every write: `tests/test_files.py`)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracekit.errors import TracekitError
from tracekit.tracefile.hta import export_for_hta
from tracekit.tracefile.perfetto import write_picture
from tracekit.tracefile.publish import publish

from ..pictures import make_picture, make_track
from ..traces import make_kernel, write_trace

BASE_NS = 1_790_857_026_000_000_000


def raw_trace(path: Path, events: list[dict[str, Any]], **top: Any) -> Path:
    path.write_text(json.dumps({"baseTimeNanoseconds": BASE_NS, "traceEvents": events, **top}))
    return path


def published(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return document


def call(ts: float) -> dict[str, Any]:
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 8, "ts": ts, "dur": 1}


def test_the_machine_s_paths_are_left_out(tmp_path: Path) -> None:
    event = {"ph": "X", "name": "triton_poi", "cat": "cpu_op", "ts": 1, "dur": 1}
    event["args"] = {"kernel_file": "/home/ada/cache/ab/cab.py"}
    raw = raw_trace(tmp_path / "raw.json", [event], traceName="/home/ada/x.json", host_name="ada-laptop")
    publish(raw, tmp_path / "out.json.gz", metadata={"form": "eager"}, marks=[])
    text = json.dumps(published(tmp_path / "out.json.gz"))
    assert "ada" not in text
    assert '"kernel_file": "cab.py"' in text
    assert not raw.exists()


def test_steps_are_marked_on_the_launching_thread_where_the_recording_has_none(tmp_path: Path) -> None:
    raw = raw_trace(tmp_path / "raw.json", [call(100.5), call(220.5)])
    marks = [(BASE_NS + 100_000, BASE_NS + 150_250), (BASE_NS + 200_000, BASE_NS + 260_000)]
    publish(raw, tmp_path / "out.json.gz", metadata={}, marks=marks)
    spans = [e for e in published(tmp_path / "out.json.gz")["traceEvents"] if e["cat"] == "user_annotation"]
    assert [(s["name"], s["ts"], s["dur"], s["pid"], s["tid"]) for s in spans] == [
        ("tracekit.step#0", 100.0, 50.25, 7, 8),
        ("tracekit.step#1", 200.0, 60.0, 7, 8),
    ]


def test_steps_the_recording_holds_are_not_marked_twice(tmp_path: Path) -> None:
    own = {"ph": "X", "cat": "user_annotation", "name": "tracekit.step#0", "pid": 7, "tid": 8, "ts": 100, "dur": 50}
    raw = raw_trace(tmp_path / "raw.json", [own, call(101)])
    publish(raw, tmp_path / "out.json.gz", metadata={}, marks=[(BASE_NS, BASE_NS + 1000)])
    events = published(tmp_path / "out.json.gz")["traceEvents"]
    assert sum(event["name"] == "tracekit.step#0" for event in events) == 1


def test_the_run_s_facts_are_added_and_equal_recordings_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        raw = raw_trace(tmp_path / f"{name}.json", [call(1)])
        size = publish(raw, tmp_path / f"{name}.json.gz", metadata={"form": "eager", "device": "cpu"}, marks=[])
        assert size == (tmp_path / f"{name}.json.gz").stat().st_size
    assert published(tmp_path / "a.json.gz")["tracekit"] == {"form": "eager", "device": "cpu"}
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"events": []}'])
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(text)
    with pytest.raises(TracekitError, match=r"raw\.json"):
        publish(raw, tmp_path / "out.json.gz", metadata={}, marks=[])
    assert not (tmp_path / "out.json.gz").exists()


EVENTS = 300


def write_perfetto(folder: Path, work: Path) -> Path:
    track = make_track("GPU 0 stream 7", *((1000 * i, 1000 * i + 500) for i in range(EVENTS)))
    write_picture(make_picture((track,)), folder / "perfetto.json.gz")
    return folder / "perfetto.json.gz"


def write_hta(folder: Path, work: Path) -> Path:
    return export_for_hta(write_trace(work, [make_kernel(i, i + 0.5) for i in range(EVENTS)]), folder)


def write_published(folder: Path, work: Path) -> Path:
    raw = write_trace(work, [make_kernel(i, i + 0.5) for i in range(EVENTS)])
    publish(raw, folder / "eager-light.json.gz", metadata={}, marks=())
    return folder / "eager-light.json.gz"


@pytest.mark.parametrize("write", [write_perfetto, write_hta, write_published])
def test_a_link_under_the_files_name_is_replaced_and_not_followed(
    tmp_path: Path, write: Callable[[Path, Path], Path]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "victim").write_text("precious")
    made = write(tmp_path / "out", tmp_path)
    made.unlink()
    made.symlink_to(tmp_path / "victim")
    assert write(tmp_path / "out", tmp_path) == made
    assert not made.is_symlink() and len(published(made)["traceEvents"]) >= EVENTS
    assert (tmp_path / "victim").read_text() == "precious"
