"""What stands below the headline: what was demanded."""

import json
import re
from html import escape

import pytest
from msgspec.structs import replace
from tests.report.showing import comparison_markdown, comparison_page, terminal_text
from tests.sides import BUSY, STEADY, make_analysis, make_form, make_side, scaled

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.model.comparison import Comparison
from tracekit.model.gate import Gate
from tracekit.report.contract import comparison_json
from tracekit.report.sections.headline import gate_text
from tracekit.report.words.common import verdict_evidence, verdict_sentence
from tracekit.statements.reasons import Exact


def gated(text: str, factor: float = 1.08) -> Comparison:
    sides = [
        replace(make_side(name, make_analysis(BUSY), make_form("compiled", us)), path=f"traces/{name}/x.json.gz")
        for name, us in (("base", STEADY), ("new", scaled(factor)))
    ]
    comparison = compare(*sides)
    return replace(comparison, gate=check(comparison, parse_conditions(text)))


def demanded(comparison: Comparison) -> list[str]:
    return [sentence for _, sentence in gate_text(comparison).conditions]


def test_each_condition_is_told_with_both_figures_and_why():
    first, second, third = demanded(gated("wall<=+3%,kernels<=+0,memory<=+0MiB"))
    assert first.startswith("wall<=+3%: failed. 1.00 ms to 1.08 ms, +")
    assert "±2 % per call" in first
    assert second == "kernels<=+0: passed. 22 to 22, 0; exact."
    assert "3.00 GiB to 3.00 GiB, 0 B" in third
    assert gate_text(replace(gated("wall<=+3%"), gate=None)) is None
    bare = replace(gated("wall<=+3%"), groups=())
    unmeasured = demanded(replace(bare, gate=check(bare, parse_conditions("groups_lost<=+0"))))
    assert unmeasured == ["groups_lost<=+0: inconclusive; not measured on both sides."]


@pytest.mark.parametrize(
    ("ends", "places"), [((12, 12), "12 places"), ((1, 1), "1 place"), ((1, 24), "1 to 24 places")]
)
def test_lost_groups_are_told_as_the_places_that_they_are(ends: tuple[float, float], places: str):
    comparison = gated("groups_lost<=+0")
    (one,), (low, high) = comparison.gate.checked, ends
    checked = replace(one, outcome="fail", base=0.0, new=high, low=low, high=high, reasons=(Exact(),))
    (sentence,) = demanded(replace(comparison, gate=Gate((checked,))))
    assert sentence.startswith(f"groups_lost<=+0: failed. {places} per step")


def test_what_an_inconclusive_gate_ends_as_stands_beside_its_outcome():
    open_, failed = gated("idle<=+9%"), gated("kernels<=0")
    passes = (replace(each, gate=replace(each.gate, taken_for="pass")) for each in (open_, failed))
    asked = "Gate: inconclusive, which passes here (--inconclusive pass)"
    assert [gate_text(each).words for each in (open_, *passes)] == ["Gate: inconclusive", asked, "Gate: failed"]


def test_every_report_begins_with_the_outcome_and_every_condition():
    comparison = gated("wall<=+3%,kernels<=+0")
    without = replace(comparison, gate=None)
    header = re.compile("<header>(.*)</header>", re.DOTALL)
    top = " ".join(header.findall(comparison_page(comparison))[0].split())
    before, _, after = top.partition("conditions")
    assert '<p class="gate fail">Gate: failed</p>' in before
    at = [after.index(escape(sentence, quote=False)) for sentence in demanded(comparison)]
    assert at == sorted(at)
    assert at[-1] < after.index("<h1"), "before what the verdict rests on"
    assert "Gate" not in header.findall(comparison_page(without))[0] + comparison_markdown(without)
    first, _, wall, kernels, *_ = comparison_markdown(comparison).splitlines()
    assert first.startswith("# Gate: failed. In separate runs, new takes 1.08× as long as base (")
    assert wall.startswith("- wall\\<=+3%: failed. 1.00 ms to 1.08 ms")
    assert kernels == "- kernels\\<=+0: passed. 22 to 22, 0; exact."
    begin, _, end = terminal_text(comparison, "all").partition("In separate runs")
    assert "Gate: failed\n  wall<=+3%: failed. 1.00 ms to 1.08 ms" in begin and "kernels<=+0: passed." in begin
    assert "Gate" not in end
    gate = json.loads(comparison_json(comparison))["gate"]
    assert (gate["outcome"], [each["outcome"] for each in gate["checked"]]) == ("fail", ["fail", "pass"])
    assert gate["checked"][0]["condition"] == {"metric": "wall", "kind": "relative", "limit": 0.03, "text": "wall<=+3%"}
    assert json.loads(comparison_json(without))["gate"] is None


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.08, r"In separate runs, new takes 1\.08× as long as base \(1\.0\d+× to 1\.1\d×\), if all else.*"),
        (0.5, r"In separate runs, new is 2\.00× faster than base \(1\.9\d× to 2\.0\d×\), if all else was.*"),
        (1.0, r"Separate runs leave open which is faster: new takes 0\.97.*"),
    ],
)
def test_the_headline_of_two_runs_says_what_is_known_and_not_the_contrary(factor: float, words: str):
    comparison = gated("wall<=+3%", factor)
    assert re.fullmatch(words, verdict_sentence(comparison))
    assert "±2 % per call" in verdict_evidence(comparison)
