import json
from collections import Counter

import polars as pl
import pytest
from msgspec.structs import replace
from tests.ranks.jobs import make_digest, simulate

from tracekit.model.picture import Panel, Picture
from tracekit.ranks.drawing import arrival, draw_ranks, release
from tracekit.ranks.joining import match_ranks
from tracekit.ranks.telling import join_ranks
from tracekit.tracefile.perfetto import MOST_BYTES, estimate_bytes, slimmed


def slices(panel: Panel, track: str) -> list[tuple[str, float, float]]:
    """Name, start and end of the slices of a track, in microseconds."""
    (found,) = (each for each in panel.tracks if each.name == track)
    return [(name, start / 1e3, end / 1e3) for name, start, end in found.slices["name", "start_ns", "end_ns"].rows()]


def arrows(picture: Picture) -> list[tuple[int, int, int, int]]:
    return picture.arrows.select("a_panel", "a_key", "b_panel", "b_key").rows()


def test_a_collective_is_divided_into_waiting_and_transfer_and_the_last_rank_leads_to_those_that_waited() -> None:
    picture = draw_ranks(match_ranks(simulate(3, 1, lambda rank, step: [300.0, 500.0, 320.0][rank])))
    assert [each.name for each in picture.panels] == ["rank 0", "rank 1", "rank 2"]
    assert slices(picture.panels[0], "collectives") == [
        ("all_reduce BFloat16", 310, 610),
        ("waiting for rank 1", 310, 510),
        ("transfer", 510, 610),
    ]
    assert slices(picture.panels[1], "collectives") == [("all_reduce BFloat16", 510, 610), ("transfer", 510, 610)]
    assert slices(picture.panels[0], "GPU stream 7") == [("gemm", 10, 310), ("ncclDevKernel_AllReduce", 310, 610)]
    assert slices(picture.panels[0], "idle") == [("python", 0, 10)]
    assert arrows(picture) == [(1, arrival(0), 0, release(0)), (1, arrival(0), 2, release(0))]


def test_a_kernel_knows_what_is_known_of_its_collective() -> None:
    first, second = simulate(2, 2, lambda rank, step: 300.0 + 100 * rank)
    picture = draw_ranks(match_ranks([replace(first, host_name="a", device=3), second]))
    (stream,) = (each for each in picture.panels[0].tracks if each.name == "GPU stream 7")
    facts = [json.loads(each) for each in stream.slices["details"]]
    told = [(each["last rank"], each["waiting us"], each["matched by"]) for each in facts if "last rank" in each]
    assert told == [(1, 100, "signature")] * 2
    assert facts[0] == {"family": "gemm", "grid": "[1, 1, 1]"}
    assert picture.panels[0].about == "a, GPU 3, NVIDIA H200"


def test_a_gap_is_one_slice_though_collectives_of_others_cut_it_and_all_of_them_are_the_idle_time() -> None:
    joined = match_ranks(simulate(2, 5, lambda rank, step: 300.0 + 40 * ((rank + step) % 2)))
    told = join_ranks(list(joined.digests.values()))
    for use, panel in zip(told.ranks, draw_ranks(joined).panels, strict=True):
        gaps = slices(panel, "idle")
        assert sum(end - start for _, start, end in gaps) == pytest.approx(use.idle_us)
        assert len(gaps) == 5


def test_hosts_whose_clocks_differ_and_drift_are_drawn_on_one() -> None:
    def clock(rank: int, us: float) -> float:
        return us * (1 + 20e-6 * (rank > 1)) + 700 * (rank > 1) + 1000

    alike = simulate(4, 40, lambda rank, step: 300.0 + 7 * ((rank * 3 + step) % 5))
    apart = simulate(4, 40, lambda rank, step: 300.0 + 7 * ((rank * 3 + step) % 5), clock=clock)
    one, other = (draw_ranks(match_ranks(each)) for each in (alike, apart))
    ends = [[[end for name, _, end in slices(panel, "collectives") if "all" in name] for panel in one.panels]]
    ends.append([[end for name, _, end in slices(panel, "collectives") if "all" in name] for panel in other.panels])
    for same in zip(*ends[1], strict=True):
        assert max(same) - min(same) < 1
    assert one.arrows.height == other.arrows.height


def test_on_unknown_clocks_each_rank_begins_at_0_and_no_arrow_claims_who_was_last() -> None:
    early, late = simulate(2, 6, lambda rank, step: 300.0 + 50 * rank * (step % 3))
    stopped = replace(late, collectives=late.collectives.with_columns(pl.col("start_ns", "end_ns") * 3))
    picture = draw_ranks(match_ranks([early, stopped]))
    assert not picture.arrows.height and len(picture.notes) == 1
    named = {name for panel in picture.panels for name, *_ in slices(panel, "collectives")}
    assert named == {"all_reduce BFloat16", "waiting", "transfer"}


def test_what_was_joined_to_no_other_rank_is_drawn_whole_and_says_why() -> None:
    early = make_digest(0, 2, talk=[(500, 900), (1000, 1100)], kernels=[(0, 500, "gemm")])
    late = make_digest(1, 2, talk=[(800, 900)], kernels=[(0, 800, "gemm")])
    picture = draw_ranks(match_ranks([early, late]))
    (talk,) = (each for each in picture.panels[0].tracks if each.name == "collectives")
    whole = [json.loads(each) for each in talk.slices.filter(pl.col("kind") == "collective")["details"]]
    assert [each.get("not matched") for each in whole].count("counts_differ") == 2 - len(arrows(picture)) >= 1


def test_64_ranks_take_no_more_room_than_their_slices_and_an_arrow_for_each_wait() -> None:
    joined = match_ranks(simulate(64, 20, lambda rank, step: 1000.0 + (rank * 7 + step * 13) % 64))
    picture = slimmed(draw_ranks(joined))
    assert not picture.notes and estimate_bytes(picture) < 3_000_000 < MOST_BYTES
    # Each step has one last rank, and 63 that waited for it.
    assert picture.arrows.height == 20 * 63
    lasts = Counter(row[0] for row in arrows(picture))
    assert lasts == {last: 63 * times for last, times in Counter(joined.waits.collectives["last_rank"]).items()}
    kept = slimmed(draw_ranks(joined), 1_000_000)
    assert estimate_bytes(kept) <= 1_000_000 and {len(panel.tracks) for panel in kept.panels} == {3}
