from __future__ import annotations

from markdown_it import MarkdownIt

from tracekit.report.comment import LONGEST, RESERVE, Detail, bounded


def test_details_are_folded_and_their_tables_are_still_markdown():
    text = bounded(["# Answer\n\n", Detail("A <b> & more", "| a |\n|---|\n| 1 |\n")])
    assert "<details><summary>A &lt;b&gt; &amp; more</summary>" in text
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<td>1</td>" in page and page.count("<details>") == page.count("</details>") == 1
    assert "<b>" not in page


def test_what_is_no_detail_is_whole_however_much_stands_before_it():
    command = "## Reproduce\n\nthe command\n"
    text = bounded(["# Answer\n\n", Detail("Long", "x" * LONGEST), Detail("Short", "the short one"), command])
    assert text.startswith("# Answer") and command in text
    assert "the short one" in text and "xxx" not in text
    assert text.endswith("Left out for length: Long. The HTML page has all of it.\n")


def test_earlier_details_come_before_later_ones_where_there_is_room_for_one():
    half = "x" * (LONGEST // 2)
    assert "Left out for length: second." in bounded([Detail("first", half), Detail("second", half)])


def test_many_that_are_left_out_are_not_all_named_and_whatever_they_are_called_it_fits():
    parts = ["x" * (LONGEST - RESERVE), *(Detail("*" * 300, "y" * LONGEST) for _ in range(400))]
    text = bounded(parts)
    assert len(text) < LONGEST
    assert "and 388 more. The HTML page has all of it." in text


def test_where_even_the_answer_is_too_long_the_text_ends_and_says_so():
    text = bounded(["# Answer\n\n", "x" * LONGEST, "after\n", Detail("Detail", "y")])
    assert text.startswith("# Answer") and "after" not in text and "<details>" not in text
    assert text.endswith("The rest is left out for its length; the HTML page has all of it.\n")
