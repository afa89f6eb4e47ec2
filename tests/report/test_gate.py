from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape

from tests.report.showing import comparison_markdown, comparison_page, printed

from tracekit.comparison import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.model.comparison import Comparison
from tracekit.model.estimate import Statement
from tracekit.model.gate import Gate
from tracekit.report.composition.summaries import comparison_summary
from tracekit.report.contract import comparison_json
from tracekit.report.sections.headline import gate_outcome, gate_sentences
from tracekit.report.words.common import verdict_evidence, verdict_sentence

from ..sides import BUSY, STEADY, make_analysis, make_form, make_side, scaled


def gated(text: str, factor: float = 1.08) -> Comparison:
    sides = [
        replace(make_side(name, make_analysis(BUSY), make_form("compiled", us)), path=f"traces/{name}/x.json.gz")
        for name, us in (("base", STEADY), ("new", scaled(factor)))
    ]
    comparison = compare(*sides)
    return replace(comparison, gate=check(comparison, parse_conditions(text)))


def test_each_condition_is_told_with_both_figures_and_why():
    first, second = gate_sentences(gated("wall<=+3%,kernels<=+0"))
    assert first.startswith("wall<=+3%: failed. 1.00 ms to 1.08 ms, +")
    assert "; all of its interval says so; ±2 % of a call are assumed" in first
    assert second == "kernels<=+0: passed. 22 to 22, 0; the figure is exact."


def test_a_figure_without_a_change_has_no_sign():
    (sentence,) = gate_sentences(gated("memory<=+0MiB"))
    assert "3.00 GiB to 3.00 GiB, 0 B" in sentence
    assert gate_sentences(replace(gated("wall<=+3%"), gate=None)) == ()


def test_what_was_measured_on_neither_side_has_no_figures():
    bare = replace(gated("wall<=+3%"), groups=())
    (sentence,) = gate_sentences(replace(bare, gate=check(bare, parse_conditions("groups_lost<=+0"))))
    assert sentence == "groups_lost<=+0: inconclusive; it was not measured on both sides."


def lost(low: float, high: float) -> str:
    comparison = gated("groups_lost<=+0")
    assert comparison.gate is not None
    (one,) = comparison.gate.checked
    checked = replace(one, outcome="fail", base=0.0, new=high, low=low, high=high, reasons=(Statement("exact"),))
    (sentence,) = gate_sentences(replace(comparison, gate=Gate((checked,))))
    return sentence


def test_lost_groups_are_told_as_the_places_that_they_are():
    told = "groups_lost<=+0: failed. {} in a step where B needs more kernels than A; the figure is exact."
    assert lost(12, 12) == told.format("12 places")
    assert lost(1, 1) == told.format("1 place")
    assert lost(1, 24) == told.format("1 to 24 places")


def test_what_an_inconclusive_gate_ends_as_stands_beside_its_outcome():
    gate = gated("idle<=+9%").gate
    assert gate is not None and gate.outcome == "inconclusive"
    assert gate_outcome(gate) == "Gate: inconclusive"
    assert (
        gate_outcome(replace(gate, taken_for="pass")) == "Gate: inconclusive, which passes here (--inconclusive pass)"
    )
    failed = gated("kernels<=0").gate
    assert failed is not None
    assert gate_outcome(replace(failed, taken_for="pass")) == "Gate: failed"


def test_the_page_begins_with_the_outcome_and_every_condition():
    comparison = gated("wall<=+3%,kernels<=+0")
    page = comparison_page(comparison)
    top = " ".join(page.partition("<header>")[2].partition("</header>")[0].split())
    before, _, after = top.partition("<h1>")
    assert '<span class="result gate fail">Gate: failed</span>' in before
    at = [after.index(escape(sentence, quote=False)) for sentence in gate_sentences(comparison)]
    assert at == sorted(at)
    assert at[-1] < after.index("a call,"), "before what the verdict rests on"
    assert (
        "Gate" not in comparison_page(replace(comparison, gate=None)).partition("<header>")[2].partition("</header>")[0]
    )


def test_the_markdown_begins_with_the_outcome_and_every_condition():
    comparison = gated("wall<=+3%,kernels<=+0")
    first, _, wall, kernels, *_ = comparison_markdown(comparison).splitlines()
    assert first.startswith("# Gate: failed. Timed in separate runs, new takes 1.08× as long as base (")
    assert wall.startswith("- wall\\<=+3%: failed. 1.00 ms to 1.08 ms")
    assert kernels == "- kernels\\<=+0: passed. 22 to 22, 0; the figure is exact."
    assert "Gate" not in comparison_markdown(replace(comparison, gate=None))


def test_the_headline_of_two_runs_says_what_is_known_and_not_the_contrary():
    assert re.fullmatch(
        r"Timed in separate runs, new takes 1\.08× as long as base \(1\.0\d+× to 1\.1\d×\), if all else was the same\.",
        verdict_sentence(gated("wall<=+3%")),
    )
    assert re.fullmatch(
        r"Timed in separate runs, new is 2\.00× as fast as base \(1\.9\d× to 2\.0\d×\), if all else was the same\.",
        verdict_sentence(gated("wall<=+3%", 0.5)),
    )
    assert verdict_sentence(gated("wall<=+3%", 1.0)).startswith(
        "base and new were timed in separate runs, which leave open which is faster: new takes 0.97"
    )
    assert "the range above is wider: ±2 % of a call are assumed" in (verdict_evidence(gated("wall<=+3%")) or "")


def test_the_json_holds_the_outcome_and_every_condition():
    gate = json.loads(comparison_json(gated("wall<=+3%,kernels<=+0")))["gate"]
    assert gate["outcome"] == "fail"
    assert [each["outcome"] for each in gate["checked"]] == ["fail", "pass"]
    assert gate["checked"][0]["condition"] == {"metric": "wall", "kind": "relative", "limit": 0.03, "text": "wall<=+3%"}
    assert json.loads(comparison_json(replace(gated("wall<=+3%"), gate=None)))["gate"] is None


def test_the_terminal_begins_and_ends_with_the_gate():
    text = printed(comparison_summary(gated("wall<=+3%,kernels<=+0"), ("tracekit open a",)), 100)
    begin = text.partition("Timed in separate runs")[0]
    assert "Gate: failed\nwall<=+3%: failed. 1.00 ms to 1.08 ms" in begin and "kernels<=+0: passed." in begin
    end = text.rstrip().rpartition("tracekit open a")[2]
    assert end.split("\n", 2)[2].startswith("Gate: failed")
    assert "kernels<=+0: passed." in end
