"""The kernel groups of real recordings: coverage, closure and what is said of them."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.traces import DATA

from tracekit.analysis import analyze
from tracekit.analysis.sequence import list_work
from tracekit.comparison import compare
from tracekit.comparison.matching import lend_operators
from tracekit.comparison.matching.operators import without_number
from tracekit.model.comparison import Comparison, GroupMember, Side
from tracekit.model.groups import GroupLabel, KernelCounts
from tracekit.tracefile import read_trace

#: A folder with whole recordings that are too large for the repository.
MORE_TRACES = os.environ.get("TRACEKIT_TRACES")


@cache
def side_of(name: str, folder: Path = DATA, lender: str | None = None) -> Side:
    trace = read_trace(folder / f"{name}.json.gz", shapes=True)
    work = list_work(trace)
    if lender is not None:
        work = lend_operators(work, list_work(read_trace(folder / f"{lender}.json.gz", shapes=True)), "lent")
    return Side(name, name, analyze(trace), None, None, None, sequence=work)


def check_groups(comparison: Comparison) -> None:
    """Against the recordings themselves: every name as often and as long as in the file, on each side."""
    for side, members in (
        (comparison.a, [each for group in comparison.groups for each in group.a]),
        (comparison.b, [each for group in comparison.groups for each in group.b]),
    ):
        times: dict[str, tuple[float, float]] = {}
        for each in members:
            count, us = times.get(each.name, (0.0, 0.0))
            times[each.name] = count + each.count, us + each.total_us
        assert side.analysis.kernels is not None and side.analysis.copies is not None
        recorded = (*side.analysis.kernels.by_name, *side.analysis.copies.by_name)
        assert times.keys() == {each.name for each in recorded}
        for each in recorded:
            assert times[each.name] == pytest.approx((each.count / side.steps, each.total_us / side.steps))


def check_kinds(comparison: Comparison) -> None:
    """That no group is called what its kernels contradict."""
    for group in comparison.groups:
        a, b = _counts(group.a), _counts(group.b)
        assert (group.kind == "eliminated") == (not b and group.how != "unmatched"), group
        assert (group.kind == "added") == (not a and group.how != "unmatched"), group
        assert (group.kind == "unmatched") == (group.how == "unmatched"), group
        if group.kind == "unchanged":
            assert a == b, group
        if group.kind == "fused":
            assert group.delta_count < 0 or any(each.name.startswith("triton_") for each in group.b), group
        if group.kind == "defused":
            assert group.delta_count > 0, group
        if group.kind == "substituted":
            assert group.evidence, group


def _counts(members: tuple[GroupMember, ...]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for each in members:
        counts[without_number(each.name)] += round(each.count)
    return counts


def check_coverage(comparison: Comparison, least: float) -> None:
    assert comparison.coverage is not None
    a_us, b_us, missed = 0.0, 0.0, [0.0, 0.0]
    for group in comparison.groups:
        a_own, b_own = (sum(each.total_us for each in side) for side in (group.a, group.b))
        a_us, b_us = a_us + a_own, b_us + b_own
        if not (group.a and group.b):
            missed = [missed[0] + a_own, missed[1] + b_own]
    assert comparison.coverage.a_time_matched == pytest.approx(1 - missed[0] / a_us)
    assert comparison.coverage.b_time_matched == pytest.approx(1 - missed[1] / b_us)
    assert min(comparison.coverage.a_time_matched, comparison.coverage.b_time_matched) >= least


@pytest.mark.parametrize(
    ("a", "b", "lender", "least"),
    [
        ("flux_eager", "flux_default", None, 0.98),
        ("vit_eager", "vit_default", None, 0.95),
        ("flux_eager", "flux_reduce-overhead", "flux_default", 0.98),
        ("vit_eager", "vit_reduce-overhead", "vit_default", 0.95),
        ("flux_eager", "flux_reduce-overhead", None, 0.95),
        ("vit_eager", "vit_reduce-overhead", None, 0.95),
    ],
)
def test_nearly_all_gpu_time_is_matched_and_no_group_is_called_what_it_is_not(
    a: str, b: str, lender: str | None, least: float
) -> None:
    comparison = compare(side_of(a), side_of(b, lender=lender))
    check_groups(comparison)
    check_kinds(comparison)
    check_coverage(comparison, least)


@pytest.mark.skipif(MORE_TRACES is None, reason="TRACEKIT_TRACES names no folder with recordings of Qwen")
def test_nearly_all_gpu_time_of_a_generation_is_matched() -> None:
    folder = Path(MORE_TRACES or "")
    comparison = compare(side_of("qwen_eager", folder), side_of("qwen_default", folder))
    check_groups(comparison)
    check_kinds(comparison)
    check_coverage(comparison, 0.95)


def test_vit_s_lost_attention_is_the_largest_change_and_says_what_it_became() -> None:
    group = compare(side_of("vit_eager"), side_of("vit_default")).groups[0]
    assert (group.kind, group.repeats, group.delta_count) == ("defused", 24, 24 * (7 - 2))
    lost, single = group.evidence[:2]
    assert lost.kind == "attention_lost"
    assert (lost.facts["products"], lost.facts["other_kernels"]) == (2, 5)
    assert single.kind == "single_precision"


def test_large_groups_have_parts_of_the_waterfall_by_their_labels() -> None:
    comparison = compare(side_of("flux_eager"), side_of("flux_default"))
    assert comparison.waterfall is not None
    labels = [part.label for part in comparison.waterfall.parts]
    assert labels[:2] == [group.label for group in comparison.groups[:2]]
    assert "unchanged_kernels" in labels


def test_flux_s_blocks_are_reported_once_with_their_number() -> None:
    groups = compare(side_of("flux_eager"), side_of("flux_default")).groups
    one = KernelCounts(1, 1, ())
    assert [group.label for group in groups[:2]] == [
        GroupLabel("fused", 76, KernelCounts(20, 0, ()), one, ("rms_norm", "neg", "stack", "mul"), more_operators=True),
        GroupLabel("fused", 36, KernelCounts(18, 0, ()), one, ("neg", "stack", "mul", "add")),
    ]


def test_names_alone_are_no_exact_match_and_lent_operators_are() -> None:
    bare, lent = (
        compare(side_of("vit_eager"), side_of("vit_reduce-overhead", lender=each)) for each in (None, "vit_default")
    )
    for comparison, how, inexact in ((bare, "names", True), (lent, "anchors", False)):
        matched = [group for group in comparison.groups if group.kind != "unmatched"]
        assert {group.how for group in matched} == {how}
        assert comparison.coverage is not None
        assert (comparison.coverage.b_time_inexact > 0.9) == inexact
    # What copies the inputs into the graph is new in B; names alone do not tell.
    assert [group.kind for group in lent.groups if not group.a] == ["added"]
    assert [group.kind for group in bare.groups if not group.a] == ["unmatched"]


def test_kernels_that_inductor_wrote_one_for_one_are_no_substitution() -> None:
    kinds = {group.label: group.kind for group in compare(side_of("vit_eager"), side_of("vit_default")).groups}
    label = GroupLabel("fused", 24, KernelCounts(1, 0, ()), KernelCounts(1, 1, ()), ("gelu",))
    assert kinds[label] == "fused"
    assert "substituted" not in kinds.values()


def test_rates_are_shares_of_the_peak_of_the_gpu_that_the_trace_names() -> None:
    rates = [group.rates for group in compare(side_of("vit_eager"), side_of("vit_default")).groups if group.rates]
    assert any(each.bandwidth_share for each in rates)
