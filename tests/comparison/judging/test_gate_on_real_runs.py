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


def test_every_metric_is_tried() -> None:
    assert [metric for metric, *_ in OUTCOMES] == list(get_args(Metric))


@pytest.mark.parametrize(("metric", "limit", "of_forms", "of_modes"), OUTCOMES, ids=lambda value: str(value))
def test_each_metric_is_judged(
    metric: str, limit: str, of_forms: str, of_modes: str, forms: Comparison, modes: Comparison
) -> None:
    condition = f"{metric}<={limit}"
    assert (checked(forms, condition).outcome, checked(modes, condition).outcome) == (of_forms, of_modes)


def test_the_twelve_attention_kernels_that_fell_apart_are_the_groups_lost(forms: Comparison) -> None:
    assert checked(forms, "groups_lost<=11").outcome == "fail"
    assert checked(forms, "groups_lost<=12").outcome == "pass"


def test_the_other_direction_fails_where_this_one_passes() -> None:
    back = compare(side("h200-vit-reduce-overhead"), side("h200-vit"))
    assert [checked(back, f"{metric}<=+3%").outcome for metric in ("wall", "idle", "launches")] == ["fail"] * 3


def test_a_regression_between_two_runs_is_told_and_explained_by_the_waterfall() -> None:
    back = compare(side("h200-vit-reduce-overhead"), side("h200-vit"))
    gate = checked(back, "wall<=+3%")
    assert gate.outcome == "fail"
    apart = back.verdict.apart
    assert apart is not None and apart.beyond
    # The headline's range is the gate's.
    assert (apart.low - 1, apart.high - 1) == pytest.approx((gate.low, gate.high))
    assert back.reason is not None
    first = back.reason.shares[0]
    assert (first.kind, [part.label for part in first.parts]) == ("idle", ["op_dispatch", "launch_call"])


def test_two_runs_have_one_note_on_how_their_kernels_were_matched() -> None:
    back = compare(side("h200-vit-reduce-overhead"), side("h200-vit"))
    codes = ("matched_by_elimination", "provenance_unused")
    (note,) = [each for each in back.notes if each.code in codes]
    assert note.facts["no_provenance"] == "other_forms"
