from __future__ import annotations

from dataclasses import replace

from markdown_it import MarkdownIt
from tests.report.showing import comparison_markdown

from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.model.comparison import Finding
from tracekit.report.document import FIRST, MORE_FINDINGS, TABLES
from tracekit.report.markdown import LONGEST, RESERVE, Piece, _detail, bounded

from .conftest import timed_comparison


def test_details_are_folded_and_their_tables_are_still_markdown():
    text = bounded(["# Answer\n\n", _detail("A <b> & more", "| a |\n|---|\n| 1 |\n")])
    assert "<details><summary>A &lt;b&gt; &amp; more</summary>" in text
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<td>1</td>" in page and page.count("<details>") == page.count("</details>") == 1
    assert "<b>" not in page


def test_what_is_no_detail_is_whole_however_much_stands_before_it():
    command = "## Reproduce\n\nthe command\n"
    text = bounded(["# Answer\n\n", _detail("Long", "x" * LONGEST), _detail("Short", "the short one"), command])
    assert text.startswith("# Answer") and command in text
    assert "the short one" in text and "xxx" not in text
    assert text.endswith("Left out for length: Long. The HTML page has all of it.\n")


def test_earlier_details_come_before_later_ones_where_there_is_room_for_one():
    half = "x" * (LONGEST // 2)
    assert "Left out for length: second." in bounded([_detail("first", half), _detail("second", half)])


def test_many_that_are_left_out_are_not_all_named_and_whatever_they_are_called_it_fits():
    parts = ["x" * (LONGEST - RESERVE), *(_detail("*" * 300, "y" * LONGEST) for _ in range(400))]
    text = bounded(parts)
    assert len(text) < LONGEST
    assert "and 388 more. The HTML page has all of it." in text


def test_where_even_the_answer_is_too_long_the_text_ends_and_says_so():
    text = bounded(["# Answer\n\n", "x" * LONGEST, "after\n", _detail("Detail", "y")])
    assert text.startswith("# Answer") and "after" not in text and "<details>" not in text
    assert text.endswith("The rest is left out for its length; the HTML page has all of it.\n")


def test_what_is_left_out_is_named_with_nothing_in_it_that_markdown_acts_on():
    text = bounded([_detail("<b>bold</b> *and* [a](b) | @you #1", "y" * LONGEST)])
    assert r"\<b\>bold\</b\> \*and\* \[a\](b) \| \@<!-- -->you \#<!-- -->1" in text
    page = MarkdownIt("commonmark", {"html": True}).render(text)
    assert "<b>" not in page and "<em>" not in page and "<a " not in page


def test_parts_find_room_by_their_rank_and_stand_in_their_order():
    half = "x" * (LONGEST // 2)
    parts = [Piece("late", f"1{half}", MORE_FINDINGS), Piece("table", f"2{half}", TABLES), Piece("gate", "3", FIRST)]
    text = bounded([*parts, _detail("small", "4"), "end\n"])
    places = [text.index(mark) for mark in ("2xx", "3", "<details>", "end")]
    assert places == sorted(places)
    assert "1xx" not in text and "Left out for length: late." in text


def test_forty_long_findings_leave_the_gate_the_figures_and_the_first_of_them():
    long = {"code": "not_comparable", "facts": {"path": "", "problem": "e" * 1500}}
    findings = tuple(
        Finding("outputs_differ", "warning", {"a": "t" * 100, "b": f"finding number {at}", "reason": long}, 1.0)
        for at in range(40)
    )
    comparison = timed_comparison()
    gate = check(comparison, parse_conditions("wall<=+3%"))
    text = comparison_markdown(replace(comparison, findings=findings, gate=gate), None, "the command")
    assert LONGEST - RESERVE - 2000 < len(text) < LONGEST
    assert "wall\\<=+3%" in text
    for told in ("Wall time, unprofiled median", "From A to B", "Kernel groups", "the command", "finding number 0 "):
        assert told in text
    assert text.count("**warning: finding number") > 20
    assert "Left out for length: finding: finding number" in text
