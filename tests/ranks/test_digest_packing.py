import numpy as np
import polars as pl

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.digest_packing import packed, unpacked


def test_what_is_packed_is_unpacked_whatever_the_times_are() -> None:
    """Rows that overlap, a gap before all else, one that starts at no moment, one whose causes are not all of it."""
    activities = pl.DataFrame({"name": list("abc"), "start_ns": [50, 60, 900], "end_ns": [70, 65, 1000]})
    collectives = pl.DataFrame({"start_ns": [60], "end_ns": [65], "ready_ns": [55]})
    causes = {cause: [number, 0, 7, 20] for number, cause in enumerate(IDLE_CAUSES)}
    gaps = pl.DataFrame({"start_ns": [-5, 2, 70, 333], "end_ns": [0, 40, 80, 600], **causes})
    places = pl.DataFrame({"start_ns": [2], "end_ns": [40], "where": ["here"]})
    for some in (gaps, gaps.clear()):
        tables = {"activities": activities, "collectives": collectives, "gaps": some, "places": places}
        assert all(table.equals(tables[name]) for name, table in unpacked(packed(tables)).items())
        few = {**tables, "activities": activities.clear(), "collectives": collectives.clear()}
        assert unpacked(packed(few))["gaps"].equals(some)


def test_so_are_many_that_are_far_apart() -> None:
    draw = np.random.default_rng(3)
    times = draw.integers(-(2**40), 2**40, (200, 3 + len(IDLE_CAUSES)))
    names = ("start_ns", "end_ns", "ready_ns", *IDLE_CAUSES)
    every = pl.DataFrame({name: times[:, at] for at, name in enumerate(names)})
    tables = {name: every.select("start_ns", "end_ns", "ready_ns") for name in ("activities", "collectives")}
    tables |= {"gaps": every.drop("ready_ns"), "places": every.select("start_ns", "end_ns")}
    assert all(table.equals(tables[name]) for name, table in unpacked(packed(tables)).items())
