"""Hosts that are held up at one place of a step, and hosts that wait for their GPU alone; and those that are not."""

from collections.abc import Callable, Sequence

import polars as pl
import pytest
from msgspec.structs import replace
from tests.ranks.jobs import US, make_digest

from tracekit.ranks.digests import RankDigest
from tracekit.ranks.host_pauses import find_pauses
from tracekit.ranks.job_figures import RankFinding
from tracekit.ranks.lone_syncs import find_lone_syncs
from tracekit.ranks.statements.findings import HeldUp, MoreLaunches
from tracekit.ranks.telling import join_ranks

STEPS, PLACES, STEP_US = 5, 8, 10_000
#: How long the host lets the GPU wait before each kernel of a step.
Gap = Callable[[int, int], float]


def usual(step: int, place: int) -> float:
    """No two steps are quite alike."""
    return 40.0 + 5 * place + 3 * (step * 7 % 5)


def held_up(us: float, *, steps: Sequence[int] = range(STEPS)) -> Gap:
    return lambda step, place: usual(step, place) + (us if place == 3 and step in steps else 0.0)


def job(*gaps: Gap, copies: Sequence[int] = ()) -> dict[int, RankDigest]:
    """Ranks whose step is eight kernels and a collective, over at the same time on all; the ranks of `copies` copy to
    the host at the fourth."""
    digests = {}
    for rank, gap in enumerate(gaps):
        kernels, talk = [], []
        for step in range(STEPS):
            now = float(step * STEP_US)
            for place in range(PLACES):
                now += gap(step, place)
                name = "Memcpy DtoH (Device -> Pinned)" if rank in copies and place == 3 else f"gemm{place}"
                kernels.append((now, now + 100, name))
                now += 100
            talk.append((now, (step + 1) * STEP_US - 1.0))
        digest = make_digest(rank, len(gaps), talk=talk, kernels=kernels)
        step_of = (pl.col("start_ns") // (STEP_US * US)).alias("step")
        tables = {name: getattr(digest, name).with_columns(step_of) for name in ("activities", "collectives")}
        windows = tuple((step * STEP_US * US, (step + 1) * STEP_US * US) for step in range(STEPS))
        digests[rank] = replace(digest, **tables, windows=windows, steps=tuple(range(STEPS)), window="steps")
    return digests


def pauses(digests: dict[int, RankDigest]) -> dict[int | None, HeldUp]:
    return {each.rank: each for each in find_pauses(digests, [tuple(digests)])}


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_pause_at_one_place_of_every_step_is_found_on_its_rank(ranks: int):
    found = pauses(job(usual, held_up(500), *[usual] * (ranks - 2)))
    assert set(found) == {1}
    assert (found[1].cause, found[1].kernel, found[1].where) == ("python", "gemm3", "train.py(12): step")
    assert found[1].more_us == pytest.approx(500) and found[1].own_us - found[1].usual_us == pytest.approx(500)


def test_two_of_four_are_found_both():
    assert set(pauses(job(usual, held_up(500), held_up(500), usual, usual))) == {1, 2}


@pytest.mark.parametrize(
    "other",
    [
        usual,
        lambda step, place: 3 * usual(step, place),
        held_up(500, steps=(2,)),
        held_up(80),
        lambda step, place: 0.0 if place == 3 else usual(step, place),
    ],
    ids=["alike", "slow throughout", "in one step", "less than 1 % of a step", "work in store"],
)
def test_what_is_no_pause_of_every_step_is_not_called_one(other: Gap):
    assert not pauses(job(usual, other))


def test_nobody_can_tell_where_the_others_had_work_in_store():
    assert not pauses(job(lambda step, place: 0.0 if place == 3 else usual(step, place), held_up(500)))


def test_a_stage_of_one_rank_is_held_against_nobody():
    digests = job(usual, held_up(500))
    assert not [*find_pauses(digests, [(0,), (1,)])]
    first = {rank: replace(each, steps=(0, 1), windows=each.windows[:2]) for rank, each in digests.items()}
    assert not pauses(first), "two steps say nothing of a third"


def waiting(digests: dict[int, RankDigest], rank: int) -> dict[int, RankDigest]:
    """The host of this rank waited in the gaps after its copies."""
    ends = digests[rank].activities.filter(pl.col("kind") == "kernel", pl.col("name").str.starts_with("Memcpy"))[
        "end_ns"
    ]
    after = pl.col("start_ns").is_in(ends.to_list())
    part = pl.when(after).then(2 * US).otherwise(0).cast(pl.Int64)
    gaps = digests[rank].gaps.with_columns(sync_wait=part, python=pl.col("python") - part)
    return {**digests, rank: replace(digests[rank], gaps=gaps)}


def test_a_rank_that_copies_to_the_host_alone_waits_alone():
    (found,) = find_lone_syncs(waiting(job(usual, usual, copies=(1,)), 1), [(0, 1)])
    after = sum(usual(step, 4) for step in range(STEPS))
    assert (found.rank, found.count, found.usual_count) == (1, STEPS, 0)
    assert found.idle_us == pytest.approx(after) and found.share == pytest.approx(after / STEPS / STEP_US)


def test_copies_that_all_make_or_nobody_waits_for_are_no_such_thing():
    both = job(usual, usual, copies=(0, 1))
    assert not [*find_lone_syncs(waiting(waiting(both, 0), 1), [(0, 1)])]
    assert not [*find_lone_syncs(job(usual, usual, copies=(1,)), [(0, 1)])]


def found_of(digests: dict[int, RankDigest]) -> dict[str, RankFinding]:
    """Each can be said."""
    findings = join_ranks([*digests.values()]).findings
    assert all(each.title() and each.long() for each in findings)
    return {each.code: each for each in findings}


def test_a_rank_that_is_slow_throughout_is_told_what_holds_it_up():
    slow = job(usual, lambda step, place: 2 * usual(step, place) + (250 if place == 3 else 0))
    told = found_of(slow)
    assert "late_rank" not in told and (told["held_up"].rank, told["held_up"].severity) == (1, "warning")
    assert told["held_up"].facts["more_us"] == pytest.approx(250) == told["held_up"].saving_us / STEPS
    # A late rank's own finding says it.
    late = found_of(job(usual, held_up(2000)))
    assert (late["late_rank"].rank, late["late_rank"].facts["cause"]) == (1, "python") and "held_up" not in late
    told = found_of(waiting(job(usual, usual, copies=(1,)), 1))
    assert (told["lone_sync"].rank, told["lone_sync"].severity) == (1, "info")


def test_a_slow_host_that_has_more_to_launch_is_told_so():
    digests = job(usual, lambda step, place: 3 * usual(step, place))
    assert "slow_host" in (alike := found_of(digests)) and "more_launches" not in alike
    fewer = digests[0].activities.filter((pl.col("name") != "gemm7") | (pl.col("step") == 0))
    told = found_of({**digests, 0: replace(digests[0], activities=fewer)})
    count, more = STEPS * PLACES, STEPS - 1
    assert told["more_launches"] == MoreLaunches(1, None, more=more, count=count, usual_count=count - more)
