"""The merged trace of a committed run in the real Perfetto UI, opened by the link that `tracekit open` prints."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.traces import analyze

from tracekit.cli.merged_trace import merge
from tracekit.serving.perfetto import offered
from tracekit.tracefile import read_trace
from tracekit.walks.reading import Reading

from ..perfetto import Loaded, find_ui, shown

RUNS = Path(__file__).parents[2] / "traces"
COUNTS = """
    select process.name || ' ' || thread.name as track, count(*) as slices, sum(dur) / 1e3 as total_us
    from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)
    group by track
"""

SIDE = """(select process.name from thread_track join thread using (utid) join process using (upid)
    where thread_track.id = {}.track_id)"""
ARROWS = f"""
    select extract_arg(a.arg_set_id, 'args.group') as one, extract_arg(b.arg_set_id, 'args.group') as other,
        {SIDE.format("a")} as one_side, {SIDE.format("b")} as other_side
    from flow join slice a on slice_out = a.id join slice b on slice_in = b.id
"""


def link_to(path: Path) -> str:
    """The link, as if the file were served from the real port."""
    with offered(path, port=0) as server:
        return server.link.replace(f":{server.port}", ":9001")


def check_tracks(page: Loaded, run: str) -> None:
    """Every slice that was written is there, on the track it was written to."""
    found = {row["track"]: row for row in page.rows(COUNTS)}
    for form in ("eager", "compiled"):
        analysis = analyze(read_trace(RUNS / run / f"{form}-light.json.gz"))
        streams = [row for name, row in found.items() if name.startswith(f"{form} {form}: GPU 0 stream 7")]
        copies = analysis.copies.memcpy_count + analysis.copies.memset_count
        assert sum(row["slices"] for row in streams) == analysis.kernels.count + copies
        total = analysis.kernels.total_us + analysis.copies.total_us
        assert sum(row["total_us"] for row in streams) == pytest.approx(total, rel=1e-9)
        assert found[f"{form} {form}: idle, GPU 0"]["total_us"] == pytest.approx(analysis.gpu.idle_us, rel=1e-9)
        assert found[f"{form} {form}: steps"]["slices"] == len(analysis.steps)
        assert found[f"{form} {form}: kernel groups, GPU 0"]["slices"] > 100


@pytest.fixture(scope="module", params=["h200-vit", "h200-vit-reduce-overhead"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Loaded]]:
    """A run's name, and the page that shows it; each is opened once for all tests."""
    find_ui()
    path = tmp_path_factory.mktemp(request.param) / "perfetto.json.gz"
    merge(str(RUNS / request.param), None, reading=Reading(cached=False), out=path)
    with shown(path, link_to(path)) as page:
        yield request.param, page


@pytest.mark.browser
def test_perfetto_shows_all_of_it_without_an_import_error(opened: tuple[str, Loaded]) -> None:
    run, page = opened
    assert page.errors() == []
    processes = {row["name"] for row in page.rows("select name from process where name is not null")}
    assert processes >= {"eager", "compiled"}
    check_tracks(page, run)
    # Nothing overlaps on a stream, and no slice lies inside another.
    assert page.rows("select max(depth) as depth from slice where category = 'kernel'") == [{"depth": 0}]
    assert page.rows("select min(ts) as ts from slice") == [{"ts": 0}]
    assert page.dialogs() == []


@pytest.mark.browser
def test_arrows_lead_from_eager_kernels_to_the_kernels_of_the_same_group(opened: tuple[str, Loaded]) -> None:
    ends = opened[1].rows(ARROWS)
    # 2 steps of 167 eager kernels, each of which has a counterpart.
    assert len(ends) == 334
    assert all(row["one"] == row["other"] is not None for row in ends)
    assert all({row["one_side"], row["other_side"]} == {"eager", "compiled"} for row in ends)


@pytest.mark.browser
def test_the_link_pins_the_gpus_tracks_and_they_are_to_be_seen(opened: tuple[str, Loaded], tmp_path: Path) -> None:
    run, page = opened
    pinned = {name.rpartition(" ")[0] for name in page.pinned()}
    assert pinned == {
        f"{form}: {track}"
        for form in ("eager", "compiled")
        for track in ("kernel groups, GPU 0", "GPU 0 stream 7", "idle, GPU 0")
    }
    # TRACEKIT_PICTURES names a folder for people to look at.
    page.picture(Path(os.environ.get("TRACEKIT_PICTURES", tmp_path)) / f"perfetto-{run}.png")
