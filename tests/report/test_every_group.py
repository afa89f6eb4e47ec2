from __future__ import annotations

import math
from dataclasses import replace

from tracekit.model.comparison import Comparison
from tracekit.report.sections import every_group as section
from tracekit.report.sections.every_group import every_group

from .conftest import cpu_comparison, hostile_comparison, matched_comparison, timed_comparison


def test_every_group_has_a_row_whose_figures_are_its_own():
    comparison = matched_comparison()
    told = every_group(comparison)
    assert told is not None
    assert [row.number for row in told.rows] == list(range(len(comparison.groups)))
    assert "are not listed" not in told.note
    change = math.fsum(row.figures[-1].value for row in told.rows)
    assert math.isclose(change, math.fsum(group.delta_us for group in comparison.groups))
    attention = told.rows[0]
    assert attention.words == ("defused", "anchors")
    assert [each.text for each in attention.figures] == ["24", "84", "76.1 µs", "258.2 µs", "+182.1 µs"]
    assert {member.letter for member in attention.members} == {"A", "B"}


def test_what_has_no_row_is_summed_up(monkeypatch):
    comparison = timed_comparison()
    monkeypatch.setattr(section, "MOST_ROWS", 1)
    told = every_group(comparison)
    assert told is not None
    assert len(told.rows) == 1
    assert told.note.endswith(" 3 more groups with smaller changes, +6.00 µs in all, are not listed.")


def test_the_words_that_occur_are_explained():
    told = every_group(timed_comparison())
    assert told is not None
    legends = {title: list(words) for title, words in told.legends}
    assert legends == {"What became of them": ["unchanged", "fused"], "Told by": ["names"]}


def test_names_are_made_harmless():
    told = every_group(hostile_comparison())
    assert told is not None
    text = repr([(row.label, row.place, row.members, row.where) for row in told.rows])
    assert "\\u202e" not in text
    assert "\\x1b" not in text


def test_a_cpu_run_has_no_groups():
    assert every_group(cpu_comparison()) is None
    bare: Comparison = replace(timed_comparison(), groups=())
    assert every_group(bare) is None
