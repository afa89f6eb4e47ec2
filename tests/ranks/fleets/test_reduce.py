from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from tests.ranks.fleets.grown import MISSING, SHAPE, SLOW, SLOW_EXPERT, SLOW_HOST, SLOW_LINK, make_fleet, told

from benchmarks.fleet import found_of
from tracekit.errors import TracekitError
from tracekit.ranks.digest_file import digest_bytes, read_digest, read_summary
from tracekit.ranks.digests import RankSummary
from tracekit.ranks.fleets import steps
from tracekit.ranks.fleets.parts import join_parts
from tracekit.ranks.summary import summarise
from tracekit.ranks.telling import join_ranks


def test_all_that_is_slow_is_found_and_nothing_else() -> None:
    expected = {("rank", SLOW), ("host", f"host{SLOW_HOST:03d}"), ("link", f"dp{SLOW_LINK[0]}_{SLOW_LINK[1]}")}
    assert found_of(told("planted")) == expected


def test_the_same_fleet_is_told_alike_each_time() -> None:
    assert join_ranks([*make_fleet("planted").summaries()]) == told("planted")


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_slow_in_a_clean_fleet(seed: int) -> None:
    assert not told(seed=seed).stragglers
    assert told(seed=seed).straggler_rule is not None


def test_a_slow_expert_group_is_found_and_experts_with_more_to_do_are_no_stragglers() -> None:
    assert not told("experts").stragglers
    found = told("slow experts")
    assert found_of(found) == {("link", "ep{}_{}_{}".format(*SLOW_EXPERT))}
    assert found.stragglers[0].excess == pytest.approx(0.8, abs=0.1)
    experts = [each.excess for each in found.groups if each.axis == "expert"]
    assert experts == pytest.approx([0, 0, 0.09], abs=0.015)


def test_a_straggler_says_by_how_much_and_why() -> None:
    found = {each.kind: each for each in told("planted").stragglers}
    assert found["rank"].excess == pytest.approx(0.19, abs=0.03)
    assert found["rank"].ci95[0] < found["rank"].excess < found["rank"].ci95[1]
    assert found["rank"].causes[0].cause == "compute"
    assert found["host"].causes[0].cause == "python"
    assert found["host"].ranks == tuple(range(20, 24))
    assert found["link"].excess == pytest.approx(0.8, abs=0.1)
    assert (found["link"].busbw_gbps or 0) < 0.7 * (found["link"].usual_gbps or 0)
    assert all(each.chance <= 0.01 and each.steps_slower == each.steps for each in found.values())


def test_waiting_is_that_of_the_simulation() -> None:
    """By the true clock: from a rank's arrival at a tensor parallel all-reduce to the last one's."""
    fleet, ranks = make_fleet(), told()
    assert ranks.clock.basis == "aligned"
    assert ranks.world.hosts == 24
    stage = fleet.stages[0]
    met = [at for at, (kind, _) in enumerate(stage.kinds) if kind == "tensor"]
    expected_us = sum(float((stage.starts[at].max(axis=1) - stage.starts[at][:, 1])[0]) for at in met) / 1e3
    rows = [each for each in ranks.collectives if each.group == "tp0"]
    waited = {one.rank: one.us for each in rows for one in each.waiting_us}
    assert waited[1] == pytest.approx(expected_us, rel=0.02)


def test_the_account_closes() -> None:
    for use in told("planted").ranks:
        parts = use.compute_us + (use.exposed_transfer_us or 0) + (use.exposed_waiting_us or 0) + use.idle_us
        unmatched = use.exposed_us - (use.exposed_transfer_us or 0) - (use.exposed_waiting_us or 0)
        assert parts + unmatched == pytest.approx(use.span_us)


def test_ranks_are_grouped_by_host_and_by_their_place_on_each_axis() -> None:
    groups = {(each.axis, each.name): each for each in told("planted").groups}
    assert {axis for axis, _ in groups} == {"host", "tensor", "data", "pipeline"}
    assert groups["tensor", "3"].ranks == tuple(rank for rank in range(96) if rank % 4 == 3 and rank not in MISSING)
    assert (groups["host", f"host{SLOW_HOST:03d}"].excess or 0) > 0.05
    assert groups["pipeline", "1"].ranks[0] == 24


def test_missing_ranks_are_named_and_their_collectives_are_counted() -> None:
    ranks = told("planted")
    assert ranks.world.missing == MISSING
    assert {each.reason for each in ranks.unmatched} == {"missing_rank"}


def test_steps_are_told_of_stragglers_and_of_bins_of_all_others() -> None:
    ranks = told("planted")
    rows = {each.name: each for each in ranks.step_rows}
    assert min(each or 0 for each in rows[f"rank {SLOW}"].excess) > 0.1
    assert sum(len(each.ranks) for each in ranks.step_rows) == len(ranks.ranks)
    assert all(each.rank in {SLOW, *range(20, 24)} for each in ranks.by_step)


def test_a_digest_s_file_has_the_summary(tmp_path: Path) -> None:
    fleet = make_fleet()
    digest, summary = next(fleet.digests()), next(fleet.summaries())
    path = tmp_path / "rank0.digest"
    path.write_bytes(digest_bytes(digest))
    read = read_summary(path.read_bytes(), str(path))
    for each in (read, summarise(digest)):
        assert each.talk == summary.talk
        assert each.groups == summary.groups
        assert each.windows == summary.windows
        for name in ("parts", "spans_ns", "compute_ns", "idle_ns", "beside_ns"):
            np.testing.assert_array_equal(getattr(each, name), getattr(summary, name))
    # Of a recording steps that follow on each other are one window.
    joined = replace(digest, windows=((digest.windows[0][0], digest.windows[-1][1]),))
    assert np.abs(np.array(summarise(joined).windows) - np.array(digest.windows)).max() < 2e5
    assert summarise(joined).compute_ns.tolist() == summary.compute_ns.tolist()
    assert read_digest(path.read_bytes(), str(path)).purposes == SHAPE.purposes(0)


def some_steps(summary: RankSummary, kept: list[int]) -> RankSummary:
    """As if the others had not been recorded."""
    tables = {name: getattr(summary, name)[kept] for name in ("spans_ns", "compute_ns", "idle_ns", "beside_ns")}
    windows, steps = (tuple(each[at] for at in kept) for each in (summary.windows, summary.steps))
    return replace(summary, **tables, windows=windows, steps=steps)


@pytest.mark.filterwarnings("error")
def test_who_recorded_fewer_steps_is_neither_fast_nor_slow_and_a_step_without_time_is_left_out() -> None:
    short, short_stage, empty = 10, range(48, 72), 4
    some = []
    for each in make_fleet().summaries():
        blank = {name: getattr(each, name).copy() for name in ("spans_ns", "compute_ns", "idle_ns", "beside_ns")}
        for table in blank.values():
            table[empty] = 0
        whole = replace(each, **blank)
        some.append(some_steps(whole, [0, 2, 3]) if each.rank == short or each.rank in short_stage else whole)
    found, usual = join_ranks(some), told()
    assert not found.stragglers
    assert [each.step for each in found.by_step] == [0, 1, 2, 3, 5, 6]
    assert all(abs(each.slower - usual.ranks[each.rank].slower) < 0.01 for each in found.ranks)
    assert "uneven_stages" not in {each.code for each in found.findings}
    excess = {(each.axis, each.name): each.excess for each in usual.groups}
    assert all(each.excess == pytest.approx(excess[each.axis, each.name], abs=0.01) for each in found.groups)


def test_a_rank_of_another_run_of_the_same_size_is_left_out() -> None:
    """As if its recording filled the gap of one that is missing: on a host of the job at the same time, and elsewhere a
    day later."""
    own, other = 30, 77
    some = [each for each in make_fleet("planted").summaries() if each.rank not in (own, other)]
    for each in make_fleet(seed=3).summaries():
        if each.rank == own:
            some.append(replace(each, origin_ns=each.origin_ns + 37_000_000))
        if each.rank == other:
            some.append(replace(each, origin_ns=each.origin_ns + 86_400 * 10**9, host_name="elsewhere"))
    found = join_ranks(some)
    assert {each.facts["rank"] for each in found.notes if each.code == "foreign"} == {own, other}
    assert found.world.missing == tuple(sorted((*MISSING, own, other)))
    assert found_of(found) == found_of(told("planted"))
    assert {each.reason for each in found.unmatched} == {"missing_rank"}


@pytest.mark.filterwarnings("error")
def test_ranks_without_any_step_are_told_all_the_same() -> None:
    none = [replace(each, spans_ns=each.spans_ns * 0) for each in make_fleet().summaries()]
    found = join_ranks(none)
    assert not found.by_step and not found.stragglers
    assert {each.slower for each in found.ranks} == {0.0} and {each.excess for each in found.groups} == {None}


def test_without_a_common_clock_stragglers_are_found_all_the_same() -> None:
    """Ends that disagree: each rank's own time needs no clock, waiting is a lower bound."""
    random = np.random.default_rng(3)
    some = []
    for each in make_fleet("planted").summaries():
        parts = each.parts.copy()
        # Ends of one collective lie as far apart as a recording with a broken clock has them.
        parts[:, :2] += random.integers(-4_000_000, 4_000_000, (len(parts), 1))
        fields = {name: getattr(each, name) for name in each.__struct_fields__} | {"parts": parts}
        some.append(type(each)(**fields))
    ranks = join_ranks(some)
    assert ranks.clock.basis == "bound"
    assert {("rank", SLOW), ("host", f"host{SLOW_HOST:03d}")} <= found_of(ranks)
    assert not ranks.waits


def test_more_steps_than_tables_hold_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST_CELLS", 3 * 7)
    summaries = list(islice(make_fleet().summaries(), 4))
    assert join_ranks(summaries[:3]).world.recorded == (0, 1, 2)
    with pytest.raises(TracekitError, match=r"4 ranks have 7 different steps, \d of them rank \d: digest fewer"):
        join_ranks(summaries)


def test_collectives_of_two_kinds_are_not_one_because_their_numbers_are_large() -> None:
    """The 2,049th kind beside the first: 4,096 times the width of these numbers is 2**64."""
    one, other = islice(make_fleet().summaries(), 2)
    talk = tuple(replace(one.talk[0], signature=str(at)) for at in range(2049))
    first, last = (np.array([[0, 10, 0, kind, 2**52 - 1, 0]]) for kind in (0, 2048))
    assert join_parts({0: replace(one, talk=talk, parts=first), 1: replace(other, talk=talk, parts=first)}).about[
        "collective"
    ].to_list() == [0]
    apart = join_parts({0: replace(one, talk=talk, parts=first), 1: replace(other, talk=talk, parts=last)})
    assert not apart.members.height and apart.left["part"].to_list() == [0, 1]
