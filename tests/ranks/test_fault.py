"""Figures of a digest that cannot be, one by one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace
from tests.ranks.jobs import simulate

from tracekit.errors import TracekitError
from tracekit.model.bounded import MOST, MOST_RANKS
from tracekit.ranks.digests import MOST_STEPS, RankDigest, RankSummary
from tracekit.ranks.fault import checked
from tracekit.ranks.summary import summarise


def make() -> RankDigest:
    """Two kernels, each before a collective."""
    return simulate(2, 2, lambda rank, step: 300.0, sequenced=True)[0]


def in_table(table: str, column: str, value: int | str, row: int = 0) -> Callable[[RankDigest], RankDigest]:
    """The digest with another value there."""

    def changed(digest: RankDigest) -> RankDigest:
        rows = getattr(digest, table)
        values = rows[column].to_list()
        values[row] = value
        return replace(digest, **{table: rows.with_columns(pl.Series(column, values))})

    return changed


def stating(**fields: Any) -> Callable[[Any], Any]:
    return lambda recording: replace(recording, **fields)


FAULTS: dict[str, tuple[str, Callable[[RankDigest], RankDigest]]] = {
    "more ranks than any job": ("1,048,577 ranks", stating(world_size=MOST_RANKS + 1)),
    "a rank that the job does not have": ("rank 2 of 2 ranks", stating(rank=2)),
    "a clock of no year": ("no time that can be", stating(origin_ns=2**63)),
    "more steps than tables hold": ("over 8,192 steps", stating(steps=tuple(range(MOST_STEPS + 1)))),
    "a window that ends first": ("windows that end", stating(windows=((5, 0),))),
    "windows that overlap": ("windows that end", stating(windows=((0, 10), (5, 20)))),
    "a kernel that ends first": ("activities that end before", in_table("activities", "end_ns", -5)),
    "a kernel of years": ("activities that last", in_table("activities", "end_ns", MOST + 1)),
    "kernels of years together": (
        "activities that last",
        lambda digest: in_table("activities", "end_ns", MOST)(in_table("activities", "end_ns", MOST, 1)(digest)),
    ),
    "kernels out of order": ("activities out of order", in_table("activities", "start_ns", 5_000, 1)),
    "a kernel of no step": ("activities of no step", in_table("activities", "step", 1)),
    "a collective of no step": ("collectives of no step", in_table("collectives", "step", -1)),
    "a collective that ran as nothing": ("no activities", in_table("collectives", "end_ns", 411_000)),
    "a collective that is ready late": ("ready after", in_table("collectives", "ready_ns", 310_001)),
    "a place of no cause": ("no cause", in_table("places", "cause", "weather")),
    "a gap beside a kernel": ("not idle", in_table("gaps", "end_ns", 20_000)),
    "a gap that has less causes than time": ("add up", in_table("gaps", "python", 1)),
    "a gap of negative causes": (
        "add up",
        lambda digest: in_table("gaps", "python", 10_001)(in_table("gaps", "gc", -1)(digest)),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_is_refused(fault: str) -> None:
    said, change = FAULTS[fault]
    assert checked(make(), "rank0.digest").rank == 0
    with pytest.raises(TracekitError, match=f"^rank0.digest cannot be used: .*{said}"):
        checked(change(make()), "rank0.digest")


def in_array(name: str, at: int | tuple[int, int], value: int) -> Callable[[RankSummary], RankSummary]:
    def changed(summary: RankSummary) -> RankSummary:
        array = getattr(summary, name).copy()
        array[at] = value
        return replace(summary, **{name: array})

    return changed


FAULTS_OF_SUMMARIES: dict[str, tuple[str, Callable[[RankSummary], RankSummary]]] = {
    "a window that ends first": ("windows that end", stating(windows=((5, 0),))),
    "steps without windows": ("windows of no step", stating(steps=(1, 2))),
    "spans without windows": ("another number of steps", stating(spans_ns=np.zeros(2, np.int64))),
    "idle time by other causes": ("another number of steps", stating(idle_ns=np.zeros((1, 2), np.int64))),
    "a negative span": ("no step takes", in_array("spans_ns", 0, -1)),
    "negative idle time": ("no step takes", in_array("idle_ns", (0, 3), -1)),
    "more compute than span": ("shorter than", in_array("compute_ns", 0, 10**9)),
    "more idle than span": ("shorter than", in_array("idle_ns", (0, 3), 10**9)),
    "more overlap than compute": ("shorter than", in_array("beside_ns", 0, 700_000)),
    "collectives of fewer columns": ("other columns", stating(parts=np.zeros((2, 5), np.int64))),
    "a collective that ends first": ("collectives that end before", in_array("parts", (0, 1), 0)),
    "a collective of years": ("collectives that last", in_array("parts", (0, 1), MOST + 1)),
    "a collective of no step": ("no step or no kind", in_array("parts", (0, 2), 1)),
    "a collective of no kind": ("no step or no kind", in_array("parts", (0, 3), 1)),
    "a number below none": ("no number", in_array("parts", (0, 4), -2)),
    "a collective that is covered twice": ("covered for longer", in_array("parts", (0, 5), 100_001)),
}


@pytest.mark.parametrize("fault", FAULTS_OF_SUMMARIES)
def test_nor_is_what_cannot_be_of_a_summary(fault: str) -> None:
    said, change = FAULTS_OF_SUMMARIES[fault]
    summary = summarise(make())
    assert checked(summary, "rank0.digest") is summary
    with pytest.raises(TracekitError, match=f"^rank0.digest cannot be used: .*{said}"):
        checked(change(summary), "rank0.digest")
