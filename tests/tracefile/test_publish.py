"""What a run publishes. Whatever this room writes goes through no link (of every write: `tests/test_files.py`)."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tracekit.errors import TracekitError
from tracekit.model.host_marks import Collection, HostMarks
from tracekit.tracefile.hta import export_for_hta
from tracekit.tracefile.perfetto import write_picture
from tracekit.tracefile.publish import publish

from ..pictures import make_picture, make_track
from ..traces import Json, make_call, make_kernel, make_op, make_span, write_trace

BASE_NS = 1_790_857_026_000_000_000


def published(
    folder: Path,
    events: list[Json],
    *steps: tuple[int, int],
    begin: int = 0,
    collections: tuple[Collection, ...] = (),
    **top: Any,
) -> Json:
    """What is written of a recording; steps and begin are since its base."""
    marks = HostMarks(
        BASE_NS + begin, tuple((BASE_NS + from_ns, BASE_NS + to_ns) for from_ns, to_ns in steps), collections
    )
    raw, out = write_trace(folder, events, baseTimeNanoseconds=BASE_NS, **top), folder / "out.json.gz"
    metadata = {"form": "eager", "device": "cpu"}
    size = publish(raw, out, metadata=metadata, marks=marks)
    assert (size, raw.exists()) == (out.stat().st_size, False)
    document: Json = json.loads(gzip.decompress(out.read_bytes()))
    assert document["tracekit"] == metadata
    return document


def test_the_machine_s_paths_are_left_out(tmp_path: Path) -> None:
    event = make_op(1, 2, kernel_file="/home/ada/cache/ab/cab.py")
    text = json.dumps(published(tmp_path, [event], traceName="/home/ada/x.json", host_name="ada-laptop"))
    assert "ada" not in text
    assert '"kernel_file": "cab.py"' in text


def test_steps_are_marked_on_the_launching_thread_where_the_recording_has_none(tmp_path: Path) -> None:
    calls = [make_call(at, at + 1, thread=8) for at in (100.5, 220.5)]
    spans = published(tmp_path, calls, (100_000, 150_250), (200_000, 260_000))["traceEvents"][2:]
    assert [(s["cat"], s["name"], s["ts"], s["dur"], s["pid"], s["tid"]) for s in spans] == [
        ("user_annotation", "tracekit.step#0", 100.0, 50.25, 100, 8),
        ("user_annotation", "tracekit.step#1", 200.0, 60.0, 100, 8),
    ]


def test_steps_the_recording_holds_are_not_marked_twice(tmp_path: Path) -> None:
    events = [make_span(100, 150), make_call(101, 102)]
    assert published(tmp_path, events, (0, 1000))["traceEvents"] == events


def test_what_ended_before_the_session_had_begun_is_left_out(tmp_path: Path) -> None:
    whole = {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "",
        "ts": 1.0,
        "dur": 99.0,
    }
    flows = [{"ph": ph, "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 100, "tid": 7, "ts": 12.0} for ph in "sf"]
    start = [
        make_call(10, 12),
        make_kernel(13, 14),
        make_call(13, 19.5, name="cudaDeviceSynchronize", correlation=2),
        *flows,
    ]
    header = {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 1.0, "args": {"name": "python"}}
    kept = [header, whole, make_span(20, 60), make_call(21, 22, correlation=3), make_kernel(23, 24, correlation=3)]
    assert published(tmp_path, [*kept, *start], begin=20_000)["traceEvents"] == kept


@pytest.mark.parametrize(("recorded", "thread"), [(8, 8), (739237568, 739237568), (9, 8)])
@pytest.mark.parametrize("ident", [739237568, 2**46 + 739237568, 2**46 - 739237568])
def test_collections_stand_on_the_thread_they_happened_on_as_the_profiler_names_it(
    tmp_path: Path, recorded: int, thread: int, ident: int
) -> None:
    at = Collection(BASE_NS + 10_500, BASE_NS + 30_000, native_id=8, ident=ident)
    # A stream is no thread.
    events = [make_call(1, 2, thread=recorded), make_kernel(2, 3, stream=739237568)]
    (span,) = published(tmp_path, events, collections=(at,))["traceEvents"][2:]
    assert (span["name"], span["ts"], span["dur"], span["pid"], span["tid"]) == ("Python GC", 10.5, 19.5, 100, thread)


def test_equal_recordings_give_equal_bytes(tmp_path: Path) -> None:
    written = []
    for _ in range(2):
        published(tmp_path, [make_call(1, 2)])
        written.append((tmp_path / "out.json.gz").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"events": []}'])
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(text)
    with pytest.raises(TracekitError, match=r"raw\.json"):
        publish(raw, tmp_path / "out.json.gz", metadata={}, marks=HostMarks())
    assert not (tmp_path / "out.json.gz").exists()


def test_a_link_under_the_files_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    raw, picture = write_trace(tmp_path, [make_kernel(0, 1)]), make_picture((make_track("GPU 0 stream 7", (0, 500)),))
    (tmp_path / "out").mkdir()
    (tmp_path / "victim").write_text("precious")
    for name, write in {
        "perfetto.json.gz": lambda path: write_picture(picture, path),
        "rank0.pt.trace.json.gz": lambda path: export_for_hta(raw, path.parent),
        "eager-light.json.gz": lambda path: publish(raw, path, metadata={}, marks=HostMarks()),
    }.items():
        made = tmp_path / "out" / name
        made.symlink_to(tmp_path / "victim")
        write(made)
        assert not made.is_symlink() and json.loads(gzip.decompress(made.read_bytes()))["traceEvents"]
    assert (tmp_path / "victim").read_text() == "precious"
