from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from tracekit.comparison import compare
from tracekit.comparison.gate import check, parse_conditions
from tracekit.model.comparison import Comparison
from tracekit.report.contract import comparison_json
from tracekit.report.sections.gate import gate_sentences, gate_table
from tracekit.report.terminal import comparison_summary

from ..sides import COMPILED, STEADY, make_analysis, make_form, make_side, scaled


def gated(text: str) -> Comparison:
    sides = [
        replace(make_side(name, make_analysis(COMPILED), make_form("compiled", us)), path=f"traces/{name}/x.json.gz")
        for name, us in (("base", STEADY), ("new", scaled(1.08)))
    ]
    comparison = compare(*sides)
    return replace(comparison, gate=check(comparison, parse_conditions(text)))


def test_each_condition_is_told_with_both_figures_and_why():
    first, second = gate_sentences(gated("wall<=+3%,kernels<=+0"))
    assert first.startswith("wall<=+3%: failed. 1.00 ms to 1.08 ms, +")
    assert "; all of its interval says so; ±2 % of it are assumed" in first
    assert second == "kernels<=+0: passed. 22 to 22, 0; the figure is exact."


def test_what_was_not_measured_has_a_dash():
    (sentence,) = gate_sentences(gated("memory<=+0MiB"))
    assert "3.00 GiB to 3.00 GiB, 0 B" in sentence
    bare = replace(gated("wall<=+3%"), gate=None)
    assert gate_sentences(bare) == ()
    assert gate_table(bare) is None


def test_the_table_is_headed_by_the_outcome_of_all():
    table = gate_table(gated("wall<=+3%,kernels<=+0"))
    assert table is not None
    assert table.caption == "Gate: failed"
    assert [row[1] for row in table.rows] == ["failed", "passed"]


def test_the_json_holds_the_outcome_and_every_condition():
    gate = json.loads(comparison_json(gated("wall<=+3%,kernels<=+0")))["gate"]
    assert gate["outcome"] == "fail"
    assert [each["outcome"] for each in gate["checked"]] == ["fail", "pass"]
    assert gate["checked"][0]["condition"] == {"metric": "wall", "kind": "relative", "limit": 0.03, "text": "wall<=+3%"}
    assert json.loads(comparison_json(replace(gated("wall<=+3%"), gate=None)))["gate"] is None


def test_the_terminal_ends_with_the_gate():
    console = Console(width=100, file=io.StringIO())
    console.print(comparison_summary(gated("wall<=+3%,kernels<=+0"), ("tracekit open a",)))
    assert isinstance(console.file, io.StringIO)
    end = console.file.getvalue().rstrip().rpartition("tracekit open a")[2]
    assert end.split("\n", 2)[2].startswith("Gate: failed")
    assert "kernels<=+0: passed." in end
