"""The ranks of a job in Perfetto's own page."""

import os
from pathlib import Path

import polars as pl
import pytest
from tests.perfetto import find_ui, show
from tests.ranks.recorded import unpack_dlrm
from tests.serving.test_in_browser import SIDE, link_to

from tracekit.ranks.commands.open_and_export import merge
from tracekit.ranks.reading.loading import RanksReading, read_ranks
from tracekit.ranks.reading.recordings import find_recordings

#: Of each collective in turn the rank that arrives last, and the sums of waits of each rank (tests/data/README.md).
LAST = (7, 7, 7, 7, 7, 5, 5, 4)
WAITED_US = (5580, 11125, 3280, 9571, 6370, 6041, 3342, 1534)
BY_KIND = """
    select process.name as process, category, count(*) as slices, sum(dur) / 1e3 as total_us
    from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)
    group by process, category
"""
#: From the last to arrive to each that waited.
WAITS = f"""
    select {SIDE.format("a")} as last, {SIDE.format("b")} as waited, a.ts as arrived, b.ts as went_on,
        a.category || ' ' || b.category as kinds
    from flow join slice a on slice_out = a.id join slice b on slice_in = b.id order by a.ts
"""


@pytest.mark.browser
def test_the_ranks_of_a_job_are_on_one_clock_with_arrows_from_the_last_to_those_that_waited(tmp_path: Path) -> None:
    find_ui()
    places = (str(unpack_dlrm(tmp_path / "job")),)
    path = merge(places, None, "auto", None, tmp_path / "perfetto.json.gz")
    read = read_ranks(find_recordings(places), RanksReading(cached=False))
    digests = {each.rank: each for each in read.values()}
    page = show(path, link_to(path))
    assert page.errors() == [] == page.dialogs()
    found = {(row["process"], row["category"]): row for row in page.rows(BY_KIND)}
    names = {rank: f"rank {rank}, GPU {rank}, {digest.device_name}" for rank, digest in digests.items()}
    for rank, name in names.items():
        kernels = digests[rank].activities.filter(kind="kernel")
        assert found[name, "kernel"]["slices"] == kernels.height
        assert found[name, "collective"]["slices"] == len(LAST) == found[name, "transfer"]["slices"]
        assert found[name, "waiting"]["total_us"] == pytest.approx(WAITED_US[rank], abs=1)
        idle_us = digests[rank].gaps.select((pl.col("end_ns") - pl.col("start_ns")).sum()).item() / 1e3
        assert found[name, "idle"]["total_us"] == pytest.approx(idle_us)
    waits = page.rows(WAITS)
    assert [each["last"] for each in waits] == [names[last] for last in LAST for _ in range(7)]
    for begin in range(0, len(waits), 7):
        assert {each["waited"] for each in waits[begin : begin + 7]} == {*names.values()} - {waits[begin]["last"]}
    assert all(each["arrived"] == each["went_on"] for each in waits)
    assert {each["kinds"] for each in waits} == {"transfer transfer"}
    tracks = [f"/rank {rank}/{track}" for rank in names for track in ("collectives", "idle")]
    assert [name.rpartition(" ")[0] for name in page.pinned()] == tracks
    page.picture(Path(os.environ.get("TRACEKIT_PICTURES", tmp_path)) / "perfetto-ranks.png")
