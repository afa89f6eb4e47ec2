import gzip
import json
from collections import defaultdict
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.model.picture import Picture
from tracekit.tracefile.perfetto import estimate_bytes, nested, side_by_side, slimmed, write_picture
from tracekit.tracefile.read import read_trace

from ..pictures import make_picture, make_track


def written(picture: Picture, folder: Path) -> list[dict[str, Any]]:
    path = folder / "perfetto.json.gz"
    size = write_picture(picture, path)
    text = gzip.decompress(path.read_bytes())
    assert len(text) == size
    return json.loads(text)["traceEvents"]


def test_each_panel_is_a_process_and_each_lane_a_named_thread(tmp_path: Path) -> None:
    stream = make_track("GPU 0 stream 7", (0, 1000), (999, 2001), (2001, 3000))
    events = written(make_picture((stream,), (stream,)), tmp_path)
    processes = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
    threads = {(each["pid"], each["tid"]): each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert sorted(processes.values()) == ["compiled", "eager"]
    lanes = {f"/{panel}/GPU 0 stream 7{again}" for panel in ("compiled", "eager") for again in ("", " (2)")}
    assert (set(threads.values()), len(threads)) == (lanes, 4)
    slices = [each for each in events if each["ph"] == "X"]
    second = {threads[each["pid"], each["tid"]] for each in slices if each["name"] == "k1"}
    assert second == {each for each in lanes if each.endswith("(2)")}
    (first,) = [each for each in slices if each["pid"] == 1 and each["name"] == "k1"]
    assert (first["ts"], first["dur"], first["cat"], first["args"]) == (0.999, 1.002, "kernel", {"number": 1})


def test_a_nested_track_is_one_lane(tmp_path: Path) -> None:
    events = written(make_picture((make_track("thread 1", (0, 100), (10, 50), nests=True),)), tmp_path)
    assert len({each["tid"] for each in events if each["ph"] == "X"}) == 1


def test_an_arrow_begins_at_whichever_end_is_earlier_in_the_lanes_of_its_slices(tmp_path: Path) -> None:
    # Perfetto drops one that ends before it begins. The compiled side's second slice stands in a lane of its own.
    eager = make_track("GPU 0 stream 7", (100, 200), (5000, 6000), keys=True)
    compiled = make_track("GPU 0 stream 7", (300, 950), (900, 1000), keys=True)
    picture = make_picture((eager,), (compiled,), arrows=(("fused", 0, 0), ("substituted", 1, 1)))
    events = written(picture, tmp_path)
    lanes = {(each["pid"], each["ts"]): each["tid"] for each in events if each["ph"] == "X"}
    flows = [each for each in events if each["ph"] in "sf"]
    assert len(set(lanes.values())) == 3
    assert all(each["tid"] == lanes[each["pid"], each["ts"]] for each in flows)
    assert [(each["ph"], each["name"], each["pid"], each["ts"]) for each in flows] == [
        ("s", "fused", 1, 0.1),
        ("f", "fused", 2, 0.3),
        ("s", "substituted", 2, 0.9),
        ("f", "substituted", 1, 5.0),
    ]
    assert flows[0]["id"] == flows[1]["id"] != flows[2]["id"] == flows[3]["id"]
    assert {each.get("bp") for each in flows if each["ph"] == "f"} == {"e"}


def test_curves_are_counters_of_their_process(tmp_path: Path) -> None:
    points = [each for each in written(make_picture((make_track("a", (0, 1)),)), tmp_path) if each["ph"] == "C"]
    assert [(each["name"], each["ts"], each["args"]) for each in points] == [
        ("eager: GPU 0 busy", 0, {"%": 10.0}),
        ("eager: GPU 0 busy", 0.05, {"%": 20.5}),
    ]


def test_the_same_picture_is_the_same_file_and_any_reader_of_traces_takes_it(tmp_path: Path) -> None:
    picture = make_picture((make_track("GPU 0 stream 7", (0, 1000), (2000, 3000)),))
    first, second = tmp_path / "a" / "one.json.gz", tmp_path / "two.json.gz"
    write_picture(picture, first)
    write_picture(picture, second)
    assert first.read_bytes() == second.read_bytes()
    assert read_trace(first).activities.height == 2


def test_a_place_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TracekitError, match=r"cannot write .*--out"):
        write_picture(make_picture((make_track("a", (0, 1)),)), tmp_path / "file" / "perfetto.json.gz")


Times = list[tuple[int, int]]
TIMES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=40).map(
    lambda some: sorted(((start, start + long) for start, long in some), key=lambda each: (each[0], -each[1]))
)


def by_lane(times: Times, lanes: list[int]) -> list[Times]:
    found: dict[int, Times] = defaultdict(list)
    for each, lane in zip(times, lanes, strict=True):
        found[lane].append(each)
    return list(found.values())


@pytest.mark.parametrize(
    ("times", "beside", "inside"),
    [
        pytest.param([(0, 10), (10, 20), (25, 30)], [0, 0, 0], [0, 0, 0], id="one after the other"),
        pytest.param([(0, 10), (9, 20), (20, 30)], [0, 1, 0], [0, 1, 0], id="an overlap of a nanosecond"),
        pytest.param([(0, 100), (10, 50), (20, 30), (60, 100)], [0, 1, 2, 1], [0, 0, 0, 0], id="one inside another"),
    ],
)
def test_lanes(times: Times, beside: list[int], inside: list[int]) -> None:
    assert side_by_side(times) == beside
    assert nested(times) == inside


@given(TIMES)
def test_slices_of_a_lane_are_apart_or_where_they_nest_inside_one_another(times: Times) -> None:
    for lane in by_lane(times, side_by_side(times)):
        assert all(end <= following for (_, end), (following, _) in pairwise(lane))
    for lane in by_lane(times, nested(times)):
        for (start, end), (begun, over) in combinations(lane, 2):
            assert begun >= end or (start <= begun and over <= end)


def test_events_that_overlap_without_end_share_the_last_of_a_hundred_lanes() -> None:
    assert nested((at, 1000 + at) for at in range(300)) == [min(at, 99) for at in range(300)]


KERNELS = tuple((at * 100_000, at * 100_000 + 50_000) for at in range(100))


def busy_picture() -> Picture:
    """100 kernels, 400 Python functions, 300 operators of which 200 are short, and an arrow for each kernel."""
    stream = make_track("GPU 0 stream 7", *KERNELS, keys=True)
    python = make_track(
        "thread 1", *((at * 10_000, at * 10_000 + 9000) for at in range(400)), kind="python", nests=True
    )
    short = make_track("thread 2", *((at * 10_000, at * 10_000 + 900) for at in range(200)), kind="op", nests=True)
    long = make_track("thread 3", *((at * 10_000, at * 10_000 + 9000) for at in range(100)), kind="op", nests=True)
    return make_picture((stream, python, short, long), (stream,), arrows=tuple(("fused", at, at) for at in range(100)))


def tracks(picture: Picture) -> list[str]:
    return [track.name for track in picture.panels[0].tracks]


def test_what_is_small_enough_stays_as_it_is() -> None:
    picture = busy_picture()
    assert slimmed(picture) is picture


def test_the_host_goes_rule_by_rule_before_the_gpu_and_each_is_said() -> None:
    picture = busy_picture()
    whole = estimate_bytes(picture)
    without_python = slimmed(picture, whole - 1)
    assert tracks(without_python) == ["GPU 0 stream 7", "thread 2", "thread 3"]
    assert [note.partition(": ")[2] for note in without_python.notes] == ["Python functions (400 events)"]
    without_short = slimmed(picture, estimate_bytes(without_python) - 1)
    assert tracks(without_short) == ["GPU 0 stream 7", "thread 3"]
    assert "host events shorter than 5 us (200 events)" in without_short.notes[-1]
    without_host = slimmed(picture, estimate_bytes(without_short) - 1)
    assert tracks(without_host) == ["GPU 0 stream 7"]
    assert without_host.arrows.height == 100
    assert len(without_host.notes) == 3


def test_at_last_it_is_cut_in_time_and_no_arrow_hangs_in_the_air() -> None:
    picture = slimmed(busy_picture(), 30_000)
    assert estimate_bytes(picture) <= 30_000
    kept = picture.panels[0].tracks[0].slices.height
    assert 10 < kept < 100
    assert picture.arrows.height == kept
    assert "start after" in picture.notes[-1]


@pytest.mark.parametrize("name", ["k" * 50, "\x01" * 50, '"' * 50, "\\" * 50, "é" * 50], ids=ascii)
def test_the_estimate_is_no_less_than_what_is_written_whatever_the_names(tmp_path: Path, name: str) -> None:
    track = make_track("GPU 0 stream 7", *KERNELS)
    named = replace(track, slices=track.slices.with_columns(name=pl.lit(name)))
    picture = make_picture((named,))
    (panel,) = picture.panels
    curve = replace(panel.counters[0], points=pl.DataFrame({"at_ns": range(100), "value": [10.0] * 100}))
    picture = replace(picture, panels=(replace(panel, name="n" * 200, counters=(curve,)),))
    size = write_picture(picture, tmp_path / "p.json.gz")
    assert size <= estimate_bytes(picture) + 1000
    assert estimate_bytes(picture) < 2 * size


def test_an_arrow_goes_with_its_end_on_either_side() -> None:
    early = make_track("GPU 0 stream 7", *((at * 1000, at * 1000 + 500) for at in range(100)), keys=True)
    late = make_track("GPU 0 stream 7", *KERNELS, keys=True)
    # Keys of the two sides have nothing to do with each other.
    late = replace(late, slices=late.slices.with_columns(pl.col("key") + 1000))
    arrows = tuple(("fused", at, at + 1000) for at in range(100))
    whole = make_picture((early,), (late,), arrows=arrows)
    assert slimmed(whole, estimate_bytes(whole)).arrows.height == 100
    picture = slimmed(whole, estimate_bytes(whole) // 2)
    kept = picture.panels[1].tracks[0].slices.height
    assert picture.panels[0].tracks[0].slices.height == 100 > kept == picture.arrows.height > 10
    other = slimmed(make_picture((late,), (early,), arrows=tuple((name, b, a) for name, a, b in arrows)), 30_000)
    assert other.arrows.height == other.panels[0].tracks[0].slices.height < 100


def test_curves_are_cut_where_the_slices_are() -> None:
    picture = make_picture((make_track("GPU 0 stream 7", *KERNELS),))
    points = pl.DataFrame({"at_ns": range(0, 10_000_000, 100_000), "value": [1.0] * 100})
    curve = replace(picture.panels[0].counters[0], points=points)
    (cut,) = slimmed(replace(picture, panels=(replace(picture.panels[0], counters=(curve,)),)), 9000).panels
    assert 10 < cut.counters[0].points.height < 100
    assert cut.counters[0].points["at_ns"].max() == cut.tracks[0].slices["start_ns"].max()
