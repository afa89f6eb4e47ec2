from pathlib import Path

import polars as pl
import pytest
from msgspec.structs import replace

from tracekit.model.picture import Picture
from tracekit.tracefile.perfetto import estimate_bytes, slimmed, write_picture

from ..pictures import make_picture, make_track

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
