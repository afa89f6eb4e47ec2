"""Every metric of a gate on the committed runs of ViT-B/16: eager with compiled, and one mode with another."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tracekit import store
from tracekit.comparison import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.model.comparison import Comparison, Side
from tracekit.model.gate import Checked, Metric
from tracekit.model.run import FormName
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side

RUNS = Path(__file__).parents[3] / "traces"


def side(run: str, form: FormName = "compiled") -> Side:
    return load_side(RUNS / run, form=form, reading=Reading(shapes=True))


@pytest.fixture(scope="module")
def forms() -> Comparison:
    return compare(side("h200-vit", "eager"), side("h200-vit"), store.load(RUNS / "h200-vit").order)


@pytest.fixture(scope="module")
def modes() -> Comparison:
    return compare(side("h200-vit"), side("h200-vit-reduce-overhead"))


@pytest.fixture(scope="module")
def back() -> Comparison:
    return compare(side("h200-vit-reduce-overhead"), side("h200-vit"))


def checked(comparison: Comparison, text: str) -> Checked:
    (one,) = check(comparison, parse_conditions(text)).checked
    return one


#: The metric, what is allowed, and what became of it: compiled beside eager, reduce-overhead beside default.
OUTCOMES = [
    ("wall", "+3%", "pass", "pass"),
    ("busy", "+5%", "fail", "pass"),
    ("idle", "+3%", "pass", "pass"),
    ("kernels", "+0", "fail", "fail"),
    ("launches", "+0", "fail", "pass"),
    ("memory", "+0", "fail", "pass"),
    ("recompiles", "+0", "inconclusive", "pass"),
    ("breaks", "+0", "inconclusive", "pass"),
    ("groups_lost", "+0", "fail", "pass"),
]


def test_each_metric_is_judged(forms: Comparison, modes: Comparison) -> None:
    assert [metric for metric, *_ in OUTCOMES] == list(get_args(Metric))
    for metric, limit, *expected in OUTCOMES:
        found = [checked(each, f"{metric}<={limit}").outcome for each in (forms, modes)]
        assert found == expected, metric
    # Twelve attention kernels fell apart.
    assert [checked(forms, f"groups_lost<={limit}").outcome for limit in (11, 12)] == ["fail", "pass"]


def test_a_regression_between_two_runs_is_told_and_explained_by_the_waterfall(back: Comparison) -> None:
    assert [checked(back, f"{metric}<=+3%").outcome for metric in ("wall", "idle", "launches")] == ["fail"] * 3
    gate, change = checked(back, "wall<=+3%"), back.verdict.apart
    assert change is not None and change.beyond
    # The headline's range is the gate's.
    assert (change.low - 1, change.high - 1) == pytest.approx((gate.low, gate.high))
    assert back.reason is not None
    first = back.reason.shares[0]
    assert (first.kind, [part.label for part in first.parts]) == ("idle", ["op_dispatch", "launch_call"])
    codes = ("matched_by_elimination", "provenance_unused")
    (note,) = [each for each in back.notes if each.code in codes]
    assert note.facts["no_provenance"] == "other_forms"
