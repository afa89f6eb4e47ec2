"""Timelines around the worst collectives: what they show is what the accounts count."""

import pytest
from msgspec.structs import replace
from tests.ranks.jobs import make_digest, simulate

from tracekit.ranks import stretches
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import Ranks, RankStretch
from tracekit.ranks.joining import match_ranks
from tracekit.ranks.telling import tell_ranks


def drawn(digests: list[RankDigest]) -> Ranks:
    return tell_ranks(match_ranks(digests), drawn=True)


def bars(stretch: RankStretch, kind: str) -> list[tuple[float, float]]:
    """Start and length of each bar of a kind."""
    timeline = stretch.timeline
    return [
        (start, length)
        for some in (timeline.work, timeline.gaps)
        for start, length, label in zip(some.starts_us, some.durations_us, some.labels, strict=True)
        if timeline.labels[label].kind == kind
    ]


def late_in_the_second_step() -> list[RankDigest]:
    early = make_digest(
        0, 2, talk=[(500, 600), (1100, 1600)], kernels=[(0, 500, "gemm"), (600, 1100, "gemm")], until_us=1600
    )
    late = make_digest(
        1, 2, talk=[(500, 600), (1500, 1600)], kernels=[(0, 500, "gemm"), (1000, 1500, "gemm")], until_us=1600
    )
    return [early, late]


def test_a_stretch_begins_where_the_last_rank_fell_behind_and_shows_who_waits_and_who_is_idle() -> None:
    told = drawn(late_in_the_second_step())
    (worst,), (stretch,) = told.worst, told.stretches
    assert (worst.number, worst.last_rank, worst.start_us, worst.arrival_spread_us) == (2, 1, 1100, 400)
    assert worst.causes[0].cause == "python" and sum(each.us for each in worst.causes) == 400
    assert (stretch.number, stretch.begin_us, stretch.arrival_us) == (2, 600, 900)
    early, late = stretch.ranks
    assert bars(early, "compute") == [(0, 500)] and bars(late, "compute") == [(400, 500)]
    assert bars(early, "waiting") == [(500, 400)] and bars(late, "waiting") == []
    assert bars(early, "transfer") == bars(late, "transfer") == [(900, 100)]
    assert bars(late, "idle") == [(0, 400)] and bars(early, "idle") == []
    # A collective's parts have its number on every rank.
    assert [each.timeline.positions for each in stretch.ranks] == [(-1, 2, 2), (-1, 2)]


def test_nothing_is_drawn_that_nobody_asked_for_or_whose_clocks_are_unknown() -> None:
    assert tell_ranks(match_ranks(late_in_the_second_step())).stretches == ()
    early, late = simulate(2, 6, lambda rank, _: 300.0 + 200 * rank)
    told = drawn([early, replace(late, collectives=late.collectives[1:], origin_ns=777_000)])
    assert told.clock.basis == "bound" and told.stretches == ()


def test_of_many_ranks_the_late_ones_are_drawn_and_the_others_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "MOST_RANKS", 6)
    told = drawn(simulate(20, 4, lambda rank, step: 300.0 + 100 * (rank == 13 + step % 2) + rank))
    for stretch in told.stretches:
        ranks = [each.rank for each in stretch.ranks]
        assert {13, 14} < set(ranks) and len(ranks) == 6 and stretch.unshown == 14


def test_very_many_short_kernels_are_drawn_together_without_losing_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "MOST_BARS", 100)
    digests = []
    for rank in (0, 1):
        kernels = [(at * 0.1, at * 0.1 + 0.1, f"kernel {at % 3}") for at in range(9_000)]
        kernels.append((900.0, 1000.0 + 500 * rank, "long"))
        digests.append(make_digest(rank, 2, talk=[(1000.0 + 500 * rank, 1600)], kernels=kernels))
    (stretch,) = drawn(digests).stretches
    assert stretch.together == 18_000
    for each in stretch.ranks:
        found = bars(each, "compute")
        assert len(found) < 3_000
        assert sum(length for _, length in found) == pytest.approx(1000 + 500 * each.rank, abs=0.5)
