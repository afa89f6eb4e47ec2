"""Findings on ranks that communicate otherwise once compiled."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.ranks.compared.test_changes import make_call
from tests.sides import make_pair, make_settings, scaled

from tracekit.comparison.comparing import compare
from tracekit.model.comparison import Comparison, Finding
from tracekit.model.waterfall import Waterfall, WaterfallPart
from tracekit.ranks.compared.changes import exposed_parts
from tracekit.ranks.compared.nouns import COMPUTE, CollectiveChange, JobChange, RankCall, RankChange

#: Findings of this file.
OVER_RANKS = {"fewer_gathers", "ddp_buckets", "less_overlap", "communication_limits", "moved_collectives"}


def kind(
    name: str, counts: tuple[float, float], bytes_: tuple[float, float], exposed: tuple[float, float] = (0, 0)
) -> Any:
    return CollectiveChange(name, *counts, *bytes_, 400.0, 400.0, *exposed)


def compared(a: RankCall, b: RankCall, *collectives: CollectiveChange, parallel: Any = "fsdp2") -> Comparison:
    """Of one rank, whose compute changed as its calls say."""
    parts = (WaterfallPart("gpu", COMPUTE, b.compute_us - a.compute_us), *exposed_parts(a, b))
    fall = Waterfall("unprofiled", 1000.0, 900.0, parts, 0.0)
    job = JobChange(0, (RankChange(0, 1000.0, 900.0, a, b, fall),), "light", "one_host", collectives)
    settings = make_settings(nproc=2, parallel=parallel)
    one, other = (replace(side, settings=settings) for side in make_pair(scaled(1), scaled(0.9)))
    return compare(one, other, job=job)


def found(comparison: Comparison) -> dict[str, Finding]:
    return {each.code: each for each in comparison.findings if each.code in OVER_RANKS}


SAME = make_call(100, 20)
SCATTERS = kind("reduce_scatter", (6, 6), (600, 600))


def test_gathers_that_no_longer_come_block_by_block_are_found_with_the_lines_to_write() -> None:
    gathers = kind("all_gather", (13, 2), (1300, 1300), (10, 90))
    ((code, finding),) = found(compared(SAME, SAME, gathers, SCATTERS)).items()
    assert (code, finding.severity, finding.saving_us) == ("fewer_gathers", "warning", 80)
    assert (finding.statement.a_gathers, finding.statement.b_each_bytes) == (13, 650)
    assert finding.advice is not None and finding.advice.code == "shard_then_compile"
    # Gathered as exposed as before it is no loss; as often, or of what is not sharded, it is nothing.
    assert found(compared(SAME, SAME, replace(gathers, b_exposed_transfer_us=5), SCATTERS))[code].severity == "info"
    assert code not in found(compared(SAME, SAME, kind("all_gather", (13, 12), (1300, 1300)), SCATTERS))
    assert set(found(compared(SAME, SAME, gathers))) == {"moved_collectives"}


def test_gradients_that_are_reduced_after_backward_are_ddp_s_buckets() -> None:
    reduces = kind("all_reduce", (13, 13), (1300, 1300))
    lost = make_call(100, 90)
    told = found(compared(SAME, lost, reduces, parallel="ddp"))
    assert set(told) == {"ddp_buckets"}
    assert (told["ddp_buckets"].severity, told["ddp_buckets"].saving_us) == ("warning", pytest.approx(70))
    assert told["ddp_buckets"].advice is not None and told["ddp_buckets"].advice.code == "wrap_then_compile"
    merged = found(compared(SAME, SAME, kind("all_reduce", (13, 5), (1300, 1300)), parallel="ddp"))
    assert (merged["ddp_buckets"].severity, merged["ddp_buckets"].advice) == ("info", None)
    assert not found(compared(SAME, SAME, reduces, parallel="ddp"))


def test_overlap_that_is_lost_is_the_time_it_makes() -> None:
    gathers = kind("all_gather", (13, 13), (1300, 1300))
    told = found(compared(SAME, make_call(100, 60), gathers, SCATTERS))
    assert set(told) == {"less_overlap"} and told["less_overlap"].saving_us == pytest.approx(40)
    assert told["less_overlap"].advice is not None
    # All-reduces within the forward cannot be prefetched.
    alone = found(compared(SAME, make_call(100, 60), kind("all_reduce", (4, 4), (40, 40)), parallel="tp"))
    assert alone["less_overlap"].advice is None
    assert not found(compared(make_call(100, 60), SAME, gathers, SCATTERS))


def test_faster_kernels_beside_communication_that_stays_are_limited_by_it() -> None:
    a = make_call(200, 150, 50)
    b = replace(a, compute_us=400.0)
    told = found(compared(a, b))
    assert set(told) == {"communication_limits"} and told["communication_limits"].saving_us == 150
    assert told["communication_limits"].statement.speedup_at_most == pytest.approx(1000 / 200)
    assert not found(compared(a, replace(a, compute_us=490.0)))
    assert not found(compared(SAME, replace(SAME, compute_us=400.0)))


def test_collectives_that_were_merged_or_are_gone_are_listed() -> None:
    merged, gone = kind("all_reduce", (12, 4), (400, 400), (30, 10)), kind("broadcast", (2, 0), (50, 0))
    told = found(compared(SAME, SAME, merged, gone, SCATTERS, parallel="tp"))
    assert set(told) == {"moved_collectives"}
    statement = told["moved_collectives"].statement
    assert [(each.name, each.same_bytes) for each in statement.changes] == [("all_reduce", True), ("broadcast", False)]
    assert statement.exposed_change_us == -20


def test_of_ranks_whose_waiting_is_unknown_only_collectives_are_told() -> None:
    untold = RankCall(1000.0, 500.0, 100.0, 100.0, 1000.0)
    merged = kind("all_reduce", (12, 4), (400, 400))
    assert set(found(compared(untold, replace(untold, compute_us=300.0), merged, parallel="tp"))) == {
        "moved_collectives"
    }
