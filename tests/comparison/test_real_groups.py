"""The kernel groups of real recordings: coverage, closure and what is said of them."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

import pytest
from tests.traces import DATA

from tracekit.analysis import analyze
from tracekit.analysis.sequence import list_work
from tracekit.comparison import compare
from tracekit.comparison.matching import lend_operators
from tracekit.model.comparison import Comparison, Side
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


def check_closes(comparison: Comparison) -> None:
    waterfall, deltas = comparison.waterfall, comparison.deltas
    assert waterfall is not None and deltas.busy_us is not None
    gpu = math.fsum(part.delta_us for part in waterfall.parts if part.kind == "gpu")
    assert gpu == pytest.approx(deltas.busy_us, abs=1e-3)
    assert waterfall.residual_us == pytest.approx(0, abs=1)


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
def test_nearly_all_gpu_time_is_matched_and_the_changes_close(a: str, b: str, lender: str | None, least: float) -> None:
    comparison = compare(side_of(a), side_of(b, lender=lender))
    assert comparison.coverage is not None
    assert min(comparison.coverage.a_time_matched, comparison.coverage.b_time_matched) >= least
    check_closes(comparison)


@pytest.mark.skipif(MORE_TRACES is None, reason="TRACEKIT_TRACES names no folder with recordings of Qwen")
def test_nearly_all_gpu_time_of_a_generation_is_matched() -> None:
    folder = Path(MORE_TRACES or "")
    comparison = compare(side_of("qwen_eager", folder), side_of("qwen_default", folder))
    assert comparison.coverage is not None
    assert min(comparison.coverage.a_time_matched, comparison.coverage.b_time_matched) >= 0.95
    check_closes(comparison)


def test_vit_s_lost_attention_is_the_largest_change_and_says_what_it_became() -> None:
    group = compare(side_of("vit_eager"), side_of("vit_default")).groups[0]
    assert (group.kind, group.repeats, group.delta_count) == ("defused", 24, 24 * (7 - 2))
    assert "2 matrix products and 5 other kernels" in group.evidence[0]
    assert "float32" in group.evidence[1]


def test_large_groups_have_parts_of_the_waterfall_by_their_labels() -> None:
    comparison = compare(side_of("flux_eager"), side_of("flux_default"))
    assert comparison.waterfall is not None
    labels = [part.label for part in comparison.waterfall.parts]
    assert labels[:2] == [group.label for group in comparison.groups[:2]]
    assert "unchanged kernels" in labels


def test_flux_s_blocks_are_reported_once_with_their_number() -> None:
    groups = compare(side_of("flux_eager"), side_of("flux_default")).groups
    assert [group.label for group in groups[:2]] == [
        "x76: 20 kernels -> 1 Triton (rms_norm, neg, stack, mul, ...)",
        "x36: 18 kernels -> 1 Triton (neg, stack, mul, add)",
    ]
