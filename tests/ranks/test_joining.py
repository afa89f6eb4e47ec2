"""What many ranks say together, of jobs whose truth is known."""

import random

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace
from tests.ranks.jobs import make_digest, simulate

from tracekit.errors import TracekitError
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.fleets.clocks import align_clocks
from tracekit.ranks.job_figures import Ranks
from tracekit.ranks.summary import summarise
from tracekit.ranks.telling import join_ranks


def waiting_of(told: Ranks) -> list[float | None]:
    return [each.waiting_us for each in told.ranks]


def codes(told: Ranks) -> set[str]:
    return {each.code for each in told.notes}


def two_ranks(**more: object) -> list[RankDigest]:
    """Rank 1 comes 300 us later to each of two collectives, whose transfer takes 100 us."""
    early = make_digest(0, 2, talk=[(500, 900), (1500, 1900)], kernels=[(0, 500, "gemm"), (1000, 1500, "gemm")], **more)
    late = make_digest(1, 2, talk=[(800, 900), (1800, 1900)], kernels=[(0, 800, "gemm"), (1000, 1800, "gemm")], **more)
    return [early, late]


@pytest.mark.parametrize("sequenced", [False, True])
def test_a_rank_waits_until_the_last_has_come_and_the_rest_is_transfer(sequenced: bool) -> None:
    told = join_ranks(two_ranks(sequenced=sequenced))
    assert [(each.waiting_us, each.transfer_us, each.last_arrivals) for each in told.ranks] == [
        (600, 200, 0),
        (0, 200, 2),
    ]
    (kind,) = told.collectives
    assert kind.matched_by == ("sequence" if sequenced else "signature")
    assert (kind.count, kind.kind, kind.arrival_spread_us) == (2, "mixed", 300)
    # A MiB in 100 us; of two ranks an all-reduce sends as much as it reduces.
    assert kind.algbw_gbps == kind.busbw_gbps == pytest.approx((1 << 20) / 100e3)
    assert [(each.rank, each.late, each.us) for each in told.waits] == [(0, 1, 600)]


def test_the_account_of_each_rank_closes() -> None:
    draw = random.Random(3)
    digests = simulate(5, 30, lambda rank, step: draw.uniform(50, 900))
    for each in join_ranks(digests).ranks:
        assert each.exposed_waiting_us is not None and each.exposed_transfer_us is not None
        parts = each.compute_us + each.exposed_waiting_us + each.exposed_transfer_us + each.idle_us
        assert parts == pytest.approx(each.span_us, abs=1e-6)
        assert sum(cause.us for cause in each.idle_causes) == pytest.approx(each.idle_us, abs=1e-6)
        assert each.waiting_us is not None and each.transfer_us is not None
        assert each.waiting_us + each.transfer_us == pytest.approx(each.communication_us, abs=1e-6)


def test_waiting_that_other_work_covers_is_not_exposed() -> None:
    early = make_digest(0, 2, talk=[(500, 900)], kernels=[(0, 500, "gemm"), (600, 850, "gemm")])
    late = make_digest(1, 2, talk=[(800, 900)], kernels=[(0, 800, "gemm")])
    use = join_ranks([early, late]).ranks[0]
    assert (use.waiting_us, use.exposed_waiting_us, use.exposed_transfer_us) == (300, 100, 50)


def test_a_rank_that_runs_more_is_late_because_of_its_kernels() -> None:
    (late,) = join_ranks(two_ranks()).late
    assert (late.rank, late.waited_for_us, late.causes[0].cause) == (1, 600, "compute")
    assert late.behind_us == 600 and late.waiter == 0


def test_who_waits_longest_for_a_late_rank_is_told_over_all_collectives() -> None:
    # Another rank arrives first each time, and rank 0 always soon after it.
    told = join_ranks(
        simulate(5, 3, lambda rank, step: {4: 900.0, 0: 210.0}.get(rank, 200.0 + 50 * (rank != step + 1)))
    )
    (found,) = told.late
    waits = {each.rank: each.us for each in told.waits}
    assert (found.rank, found.waiter, found.most_waited_us) == (4, 0, pytest.approx(3 * 690))
    assert found.most_waited_us == max(waits.values()) and sum(waits.values()) == pytest.approx(found.waited_for_us)


def test_a_host_that_slept_once_is_the_cause_of_all_that_follows() -> None:
    # Both run the same kernels; rank 1 begins 400 us later and never catches up within the step.
    kernels = [(0, 100, "gemm"), (100, 200, "gemm"), (200, 300, "gemm")]
    late_kernels = [(start + 400, end + 400, name) for start, end, name in kernels]
    early = make_digest(0, 2, talk=[(100, 510), (510, 620), (620, 730)], kernels=kernels)
    late = make_digest(1, 2, talk=[(500, 510), (600, 620), (700, 730)], kernels=late_kernels)
    told = join_ranks([early, late])
    (found,) = told.late
    assert found.rank == 1 and found.one_gap_share == 1
    assert found.causes[0].cause == "python"
    assert found.causes[0].us == pytest.approx(found.waited_for_us, rel=0.01)
    assert found.where == ("train.py(12): step",)


def test_more_of_a_kernel_than_others_run_is_uneven_work() -> None:
    early = make_digest(0, 2, talk=[(500, 900)], kernels=[(0, 500, "gemm")])
    late = make_digest(1, 2, talk=[(800, 900)], kernels=[(0, 500, "gemm"), (500, 800, "extra")])
    told = join_ranks([early, late])
    assert [(each.rank, each.name, each.count, each.more_us) for each in told.uneven] == [(1, "extra", 1, 300)]
    assert {(each.code, each.rank) for each in told.findings} >= {("late_rank", 1), ("uneven_work", 1)}


def test_kernels_beside_a_collective_are_held_against_the_same_alone() -> None:
    kernels = [(at * 200.0, at * 200.0 + 100, "gemm") for at in range(20)]
    slowed = [(start, end + (30 if at >= 10 else 0), name) for at, (start, end, name) in enumerate(kernels)]
    early = make_digest(0, 2, talk=[(1990, 4000)], kernels=slowed)
    late = make_digest(1, 2, talk=[(3950, 4000)], kernels=kernels)
    waiting, other = join_ranks([early, late]).ranks
    assert waiting.overlap_price_us == pytest.approx(300, rel=0.02)
    assert other.overlap_price_us is None
    # Of the 2010 us in the collective rank 0 waited 1960.
    of_waiting = waiting.overlap_price_us * 1960 / 2010
    assert waiting.waiting_cost_us == pytest.approx((waiting.exposed_waiting_us or 0.0) + of_waiting)
    assert (other.price_of_waiting_us, other.waiting_cost_us) == (None, other.exposed_waiting_us)


@pytest.mark.parametrize(("offset_us", "drift"), [(0.0, 0.0), (500.0, 20e-6), (-80_000.0, -20e-6)])
def test_the_clocks_of_two_hosts_are_aligned_on_the_ends_of_collectives(offset_us: float, drift: float) -> None:
    draw = random.Random(7)
    work = {(rank, step): draw.uniform(400, 600) for rank in range(4) for step in range(60)}

    def clock(rank: int, us: float) -> float:
        return us + 200_000 if rank < 2 else us * (1 + drift) + offset_us + 200_000

    truth = join_ranks(simulate(4, 60, lambda rank, step: work[rank, step]))
    told = join_ranks(simulate(4, 60, lambda rank, step: work[rank, step], clock=clock))
    assert told.clock.basis == ("aligned" if offset_us else "one_host")
    assert told.world.hosts == (2 if offset_us else 1)
    for true, found in zip(waiting_of(truth), waiting_of(told), strict=True):
        assert found == pytest.approx(true, abs=60 * 2.0)


@pytest.mark.parametrize("size", [2, 4])
def test_two_ranks_that_take_turns_on_a_gpu_are_joined_by_place_where_nobody_else_is(size: int) -> None:
    """Of ten kernels that state no group three end 200 us apart, all of them under way at one moment."""
    talk = [(at * 2000.0, at * 2000.0 + 500) for at in range(10)]
    apart = [(start, end + (200 if at < 3 else 0)) for at, (start, end) in enumerate(talk)]
    told = join_ranks([make_digest(rank, size, talk=each, group=None) for rank, each in enumerate((talk, apart))])
    assert sum(each.count for each in told.collectives) == (10 if size == 2 else 7)
    assert {each.reason for each in told.unmatched} == (set() if size == 2 else {"ends_disagree"})


@pytest.mark.parametrize("apart_ns", [7 * 10**6, 25_000])
def test_hosts_that_nobody_names_are_aligned_however_close_their_clocks(apart_ns: int) -> None:
    digests = dict.fromkeys(range(64), make_digest(0, 64, talk=[(10, 20)], kernels=[(0, 10, "gemm")]))
    draw = random.Random(5)
    rows = [
        (at, rank, end - 50_000, end)
        for at in range(9)
        for rank in digests
        for end in [at * 10**6 + rank // 4 * apart_ns + draw.randrange(5000)]
    ]
    every = pl.DataFrame(rows, schema=["collective", "rank", "start", "end"], orient="row")
    clocks = align_clocks(digests, every)
    assert clocks.basis == "aligned" and (clocks.hosts == 16 or apart_ns < 60_000)
    assert clocks.uncertainty_ns is not None and clocks.uncertainty_ns < 10_000
    ends = clocks.common_of(every["rank"].to_numpy(), every["end"].to_numpy()).reshape(9, 64)
    assert np.ptp(ends, axis=1).max() < 10_000


@pytest.mark.parametrize("late_by_us", [0.0, 150.0])
def test_ends_that_scatter_as_over_a_slow_network_are_on_one_clock(late_by_us: float) -> None:
    """Rank 2's ends come `late_by_us` later than the others' each time, as of the last of a ring."""
    draw, early, late = random.Random(3), [], []
    for at in range(12):
        start = at * 3000.0
        early.append((start + 500, start + 1800 + draw.uniform(-250, 250)))
        late.append((start + 900, start + 1800 + draw.uniform(-250, 250)))
    third = [(start, end + late_by_us) for start, end in early]
    kernels = [[(start - 400, start - 1, "gemm") for start, _ in talk] for talk in (early, late, third)]
    digests = [make_digest(rank, 3, talk=talk, kernels=kernels[rank]) for rank, talk in enumerate((early, late, third))]
    told = join_ranks(digests)
    assert (told.clock.basis, told.world.hosts, told.unmatched) == ("one_host", 1, ())
    assert told.clock.uncertainty_us is not None and told.clock.uncertainty_us > 100
    assert told.late[0].rank == 1 and waiting_of(told) == pytest.approx([12 * 400, 0, 12 * 400])


def test_three_slow_ranks_of_64_are_found_where_one_is_missing_one_cut_off_and_one_of_another_job() -> None:
    draw, slow = random.Random(11), {5: 300.0, 23: 260.0, 48: 280.0}
    order = [draw.choice(list(slow)) for _ in range(40)]
    digests = simulate(
        64, 40, lambda rank, step: 1000 + draw.uniform(0, 20) + (order[step] == rank) * slow.get(rank, 0.0)
    )
    cut = digests[9]
    digests[9] = replace(cut, collectives=cut.collectives.head(15), truncated=True)
    foreign = make_digest(0, 8, talk=[(10, 20)], kernels=[(0, 10, "gemm")])
    told = join_ranks([*(each for each in digests if each.rank != 17), foreign])
    assert told.world.missing == (17,)
    assert {"ranks_missing", "rank_damaged", "other_job"} <= codes(told)
    assert {each.rank for each in told.late[:3]} == set(slow)
    assert not {each.rank for each in told.findings if each.code == "late_rank"} - set(slow)
    # What the cut-off rank still had is joined by its ends.
    assert sum(each.count for each in told.collectives) == 40 and not told.unmatched
    assert sum(each.count for each in told.collectives if each.matched_by == "ends") == 15


def test_ranks_that_recorded_unequally_many_are_joined_by_their_ends() -> None:
    early, late = simulate(2, 6, lambda rank, step: 300.0 + 200 * rank)
    thinned = replace(late, collectives=late.collectives[1:])
    told = join_ranks([early, thinned])
    assert [(each.count, each.matched_by) for each in told.collectives] == [(5, "ends")]
    assert [(each.rank, each.reason, each.count) for each in told.unmatched] == [(0, "counts_differ", 1)]
    assert told.ranks[0].waiting_us == pytest.approx(5 * 200)


def test_where_ends_do_not_agree_and_counts_differ_nothing_is_joined() -> None:
    early, late = simulate(2, 6, lambda rank, step: 300.0 + 200 * rank)
    told = join_ranks([early, replace(late, collectives=late.collectives[1:], origin_ns=777_000)])
    assert told.clock.basis == "bound" and not told.collectives and not told.late
    assert {(each.rank, each.count) for each in told.unmatched} == {(0, 6), (1, 5)}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"rank": 0, "path": "again.json"}, "rank_twice"),
        ({"rank": None}, "rank_unknown"),
        ({"world_size": 4}, "other_job"),
        ({"skipped": 3}, "rank_damaged"),
        ({"steps": (3, 4)}, "steps_differ"),
    ],
)
def test_what_is_wrong_with_a_recording_is_said(change: dict[str, object], code: str) -> None:
    first, second, third = simulate(3, 4, lambda rank, step: 300.0)
    told = join_ranks([first, second, replace(third, **change)])  # type: ignore[arg-type]
    assert code in codes(told)
    assert {each.rank for each in told.ranks} <= {0, 1, 2}


@pytest.mark.parametrize("offset_us", [7_000.0, 0.0])
def test_a_rank_of_another_run_is_left_out_and_the_late_one_of_this_is_found(offset_us: float) -> None:
    def draws(seed: int) -> list[RankDigest]:
        draw = random.Random(seed)
        work = [[draw.uniform(200, 400) + 300 * (rank == 1) for rank in range(6)] for _ in range(30)]
        return simulate(6, 30, lambda rank, step: work[step][rank], sequenced=True, origin_us=1e6)

    whole, others = draws(1), draws(2)
    stranger = replace(others[4], origin_ns=others[4].origin_ns + round(offset_us * 1e3))
    told = join_ranks([*whole[:4], stranger, whole[5]])
    assert [each.facts["rank"] for each in told.notes if each.code == "foreign"] == [4]
    assert told.world.missing == (4,) and told.clock.basis == "one_host" and not told.unmatched
    assert told.late[0].rank == 1 and sum(each.count for each in told.collectives) == 30


def test_what_was_recorded_at_another_time_on_a_host_of_the_job_is_left_out() -> None:
    day = 86_400 * 10**9
    ranks = [replace(each, host_name="a") for each in simulate(3, 4, lambda rank, step: 300.0)]
    before = [replace(each, origin_ns=each.origin_ns - day) for each in ranks]
    told = join_ranks([before[0], *ranks[:2]])
    assert [each.facts["apart_us"] for each in told.notes if each.code == "other_time"] == [-day / 1e3]
    assert [each.rank for each in told.ranks] == [0, 1] and told.clock.basis == "one_host"
    filling = join_ranks([before[2], *ranks[:2]])
    assert filling.world.missing == (2,) and "other_time" in codes(filling)
    # Of a host of its own the clock may be wrong.
    elsewhere = join_ranks([replace(before[2], host_name="b"), *ranks[:2]])
    assert not elsewhere.world.missing and elsewhere.clock.basis == "aligned"


def test_one_rank_alone_says_that_waiting_cannot_be_told() -> None:
    told = join_ranks(two_ranks()[:1])
    assert "one_rank" in codes(told) and told.ranks[0].waiting_us is None
    assert not told.late and told.world.missing == (1,)


def test_what_was_waited_for_others_to_start_recording_is_in_no_figure() -> None:
    early = make_digest(0, 2, talk=[(500, 3_000_900), (3_001_500, 3_001_900)], kernels=[(0, 500, "gemm")])
    late = make_digest(
        1,
        2,
        talk=[(1_000_800 - 1_000_000, 900), (1800, 1900)],
        kernels=[(0, 800, "gemm"), (1000, 1800, "gemm")],
        origin_us=3_000_000.0,
    )
    told = join_ranks([early, late])
    assert told.ranks[0].start_skew_us == pytest.approx(2_999_500)
    assert told.ranks[0].waiting_us == pytest.approx(800 + 300)
    assert "start_skew" in codes(told)
    # The same where summaries are all there is.
    for use, known in zip(join_ranks([summarise(early), summarise(late)]).ranks, told.ranks, strict=True):
        assert use.start_skew_us == known.start_skew_us and use.waiting_us == known.waiting_us
        own, known_own = (each.compute_us + each.idle_us for each in (use, known))
        assert (use.span_us, own) == pytest.approx((known.span_us, known_own), rel=0.01)


def test_no_recording_is_an_error() -> None:
    with pytest.raises(TracekitError, match="no recording"):
        join_ranks([])


def test_the_worst_collective_says_who_waited_in_it_and_when_on_the_common_clock() -> None:
    late = {(0, 1): 700.0, (2, 2): 400.0}
    told = join_ranks(
        simulate(3, 4, lambda rank, step: late.get((rank, step), 300.0), clock=lambda rank, us: us + 5000.0)
    )
    worst = told.worst[0]
    assert (len(told.worst), worst.count, worst.last_rank, worst.kind) == (2, 1, 0, "waiting")
    # The window begins at 0, the job at 5,010 us; a step takes 300 us of work, 100 of transfer and 20 of nothing.
    assert worst.start_us == pytest.approx(5000 + 10 + 420 + 300)
    assert [(each.rank, each.waiting_us, each.transfer_us) for each in worst.parts] == [
        (0, 0, 100),
        (1, 400, 100),
        (2, 400, 100),
    ]
    assert [each.start_us for each in worst.parts] == [worst.start_us + 400, worst.start_us, worst.start_us]


def test_on_unknown_clocks_a_single_collective_has_no_start_and_nobody_is_last() -> None:
    early, late = simulate(2, 6, lambda rank, step: 300.0 + 50 * rank * (step % 3))
    stopped = replace(late, collectives=late.collectives.with_columns(pl.col("start_ns", "end_ns") * 3))
    worst = join_ranks([early, stopped]).worst
    assert worst
    assert {(each.start_us, each.last_rank, each.kind) for each in worst} == {(None, None, "inconclusive")}
