"""A job says the same however many ranks it has: who is late, why, and what is found and said."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace
from tests.ranks.jobs import make_digest

from tracekit.ranks.digest_file import digest_bytes
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import Ranks
from tracekit.ranks.joining import hold, match_ranks
from tracekit.ranks.reading import telling
from tracekit.ranks.reading.loading import RanksReading
from tracekit.ranks.reading.recordings import find_recordings
from tracekit.ranks.report.overview import ranks_overview
from tracekit.ranks.report.ranks_page import ranks_report
from tracekit.ranks.summary import summarise
from tracekit.ranks.telling import choose_explained, reduce_ranks, tell_ranks

SIZES = (2, 8, 63, 64, 65, 128, 200)
#: Steps, and layers of each: a kernel and an all-reduce; microseconds of these and between them.
STEPS, LAYERS, KERNEL_US, TRANSFER_US, GAP_US = 5, 3, 400.0, 100.0, 5.0
#: Which rank is late, and by how much in each step.
LATE, LATE_US = 1, 600.0
#: What makes it so, and the cause that is told: its host pauses before the first kernel, or it runs one more.
PLANTS = {"pause": "python", "more": "compute"}


@cache
def play(size: int, plant: str | None = None, jitter_us: float = 0.0) -> tuple[RankDigest, ...]:
    """What each rank would have recorded."""
    talk: list[list[tuple[float, float]]] = [[] for _ in range(size)]
    kernels: list[list[tuple[float, float, str]]] = [[] for _ in range(size)]
    now = [10.0] * size
    for step, layer in product(range(STEPS), range(LAYERS)):
        for rank in range(size):
            late = rank == LATE and layer == 0
            begun = now[rank] + GAP_US + LATE_US * (late and plant == "pause")
            now[rank] = begun + KERNEL_US + jitter_us * ((rank + step) % 2)
            kernels[rank].append((begun, now[rank], f"gemm{layer}"))
            if late and plant == "more":
                kernels[rank].append((now[rank], now[rank] + LATE_US, "more"))
                now[rank] += LATE_US
        over = max(now) + TRANSFER_US
        for rank in range(size):
            talk[rank].append((now[rank], over))
            now[rank] = over
    return tuple(make_digest(rank, size, talk=talk[rank], kernels=kernels[rank]) for rank in range(size))


def mark(digest: RankDigest) -> RankDigest:
    """With its steps, which end where their last all-reduce does."""
    over = digest.collectives["end_ns"].to_numpy()[LAYERS - 1 :: LAYERS]

    def with_steps(table: pl.DataFrame) -> pl.DataFrame:
        at = np.searchsorted(over[:-1], table["start_ns"].to_numpy(), side="right")
        return table.with_columns(step=pl.Series(at, dtype=pl.Int64))

    tables = {name: with_steps(getattr(digest, name)) for name in ("activities", "collectives")}
    return replace(digest, window="steps", steps=tuple(range(STEPS)), **tables)


def tell(digests: Sequence[RankDigest]) -> Ranks:
    """As of more ranks than are held at once: summaries first, then the digests of those that are explained."""
    joined = match_ranks([summarise(each) for each in digests])
    reduced = reduce_ranks(joined)
    return tell_ranks(hold(joined, {rank: digests[rank] for rank in choose_explained(reduced)}), reduced)


def said(told: Ranks) -> dict[str, object]:
    """What a reader is told of it, but how many ranks there are."""
    overview = ranks_overview(told)
    first = told.late[0] if told.late else None
    return {
        "headline": overview.headline,
        "evidence": overview.evidence,
        "advice": overview.advice,
        "notes": [each.long() for each in told.notes],
        "findings": [(each.code, each.rank, each.title(), each.long(), each.to_do()) for each in told.findings],
        "late": [each.rank for each in told.late],
        "causes": first and [(each.cause, round(each.us / first.waited_for_us, 6)) for each in first.causes],
        "places": first and first.where,
        "waiter": first and (round(first.most_waited_us, 3), first.times_behind),
        "sections": [each.title for each in ranks_report(told).sections if each.title not in ("Stragglers", "Groups")],
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("plant", PLANTS)
def test_the_number_of_ranks_changes_no_finding_and_no_sentence(plant: str, marked: bool) -> None:
    usual = None
    for size in SIZES:
        digests = [mark(each) if marked else each for each in play(size, plant)]
        told = tell(digests)
        # The planted truth: all wait for that rank, as long as it was late, in each step once.
        assert told.late[0].rank == LATE
        assert told.late[0].waited_for_us == pytest.approx(LATE_US * STEPS * (size - 1))
        assert told.late[0].causes[0].cause == PLANTS[plant]
        assert [each.rank for each in told.findings if each.code == "late_rank"] == [LATE]
        usual = usual or said(told)
        assert said(told) == usual, size
        if size in (8, 65):
            # What was read first, summaries or digests, is nothing that anybody sees.
            assert tell_ranks(match_ranks(digests)) == told


@pytest.mark.filterwarnings("error")
def test_where_nobody_is_late_nobody_is_named_and_of_one_step_nothing_is_tested() -> None:
    for size in SIZES:
        whole, steps = (tell([each(one) for one in play(size, jitter_us=2.0)]) for each in (lambda one: one, mark))
        for told in (whole, steps):
            assert not {each.code for each in told.findings} & {"late_rank", "slow_host", "straggler_rank", "slow_gpu"}
            assert ranks_overview(told).headline.startswith("Communication costs the job")
        (note,) = (each.long() for each in whole.notes if each.code == "not_tested")
        assert note.startswith("1 step: whether a rank, host or link is slow beyond chance is not tested")
        assert whole.straggler_rule is None and "not_tested" not in {each.code for each in steps.notes}
        assert (steps.straggler_rule is not None) == (size >= 16)


def test_of_more_ranks_than_are_held_one_whose_summary_alone_is_whole_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in play(4, "pause"):
        content = bytearray(digest_bytes(each))
        if each.rank == 3:
            content[len(content) // 4] ^= 1
        (tmp_path / f"rank{each.rank}.digest").write_bytes(content)
    monkeypatch.setattr(telling, "MOST_HELD", 2)
    told, _ = telling.tell_recordings(
        find_recordings([str(tmp_path)]), RanksReading(), "local", drawn=True, each_alone=False
    )
    assert told.world.missing == (3,) and told.stretches
    assert [each.code for each in told.notes if each.fault] == ["unreadable"]
    assert [each.rank for each in told.findings if each.code == "late_rank"] == [LATE]
