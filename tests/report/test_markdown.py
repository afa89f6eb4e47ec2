import html
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace
from tests.fuzzing import fuzzed
from tests.report.showing import comparison_markdown

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.model.comparison import Finding
from tracekit.names import printable
from tracekit.report.document import (
    FIRST,
    MORE_FINDINGS,
    TABLES,
    Explorer,
    ExplorerRow,
    Figure,
    Member,
    Name,
    Overview,
    Part,
    Report,
    Section,
    Table,
    columns,
)
from tracekit.report.markdown import (
    LONGEST,
    LONGEST_OPENED,
    RESERVE,
    Piece,
    _cell,
    _detail,
    _text,
    bounded,
    details_of,
    escaped,
    fenced,
    unlinked,
)
from tracekit.statements.accuracy import NotComparable
from tracekit.statements.advice import CompileLayers, RunAgain
from tracekit.statements.findings.compiling import UncompiledComponent
from tracekit.statements.findings.precision import OutputsDiffer
from tracekit.statements.findings.waiting import LaunchBound, OperatorCall, SynchronisingCalls
from tracekit.statements.health import SkippedEvents
from tracekit.statements.noted import InOneOutputOnly
from tracekit.statements.notes.recordings import DamagedRecording

from ..sides import make_analysis, make_run, make_side
from .conftest import (
    HOSTILE_NAMES,
    bare_comparison,
    cpu_comparison,
    hostile_comparison,
    timed_comparison,
)


def html_of(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def test_bare_traces_are_told_without_a_verdict(markdown_file):
    assert comparison_markdown(bare_comparison()) == markdown_file


def test_a_cpu_comparison_is_told_without_gpu_figures(markdown_file):
    assert comparison_markdown(cpu_comparison()) == markdown_file


def test_hostile_names_are_no_html_and_break_no_table():
    text = comparison_markdown(hostile_comparison())
    page = html_of(text)
    assert not re.search('<script|<img|onerror="', page)
    assert all(line.endswith("|") for line in text.splitlines() if line.startswith("|"))
    assert page.count("<table>") == text.count("\n|---") + text.count("\n|--:") + text.count("\n| ---|")


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "+ one", "- one", "12. one", "12) one", "=== one", "1.5 ms"])
def test_escaped_text_reads_as_it_was_written(name):
    opened, token, closed = MarkdownIt("commonmark").parse(escaped(name))
    assert (opened.type, closed.type) == ("paragraph_open", "paragraph_close")
    shown = (child.content for child in token.children or () if child.content != "<!-- -->")
    assert "".join(shown).strip() == printable(name).strip()


@given(code=st.text("`|\\ a\n<&~$", min_size=1).filter(str.strip))
@example(code="` `` |\\|` ")
@fuzzed(100)
def test_code_reads_as_it_was_written_in_a_table_and_in_a_block(code):
    tokens = (
        MarkdownIt("commonmark").enable("table").parse(f"| a | b |\n|---|---|\n| {_cell(Name(code, code))} | c |\n")
    )
    _, _, one, other = (each for each in tokens if each.type == "inline")
    assert [(each.type, each.content) for each in one.children or ()] == [("code_inline", printable(code))]
    assert other.content == "c"
    block, after, *_ = MarkdownIt("commonmark").parse(f"{fenced(code)}after\n")
    assert (block.type, block.content) == ("fence", "\n".join(map(printable, code.split("\n"))) + "\n")
    assert after.type == "paragraph_open"


WAITS = LaunchBound(wall_us=1000.0, idle_us=500.0, host_share=0.95, launching_share=0.9)
STATES = UncompiledComponent("vae", False, 60.0, 863.0, 0.25, others=())


def test_a_command_to_try_is_whole_however_long_it_is():
    command = "tracekit profile qwen2.5-vl " + " ".join(f"--option-{n} value" for n in range(20))
    finding = Finding(WAITS, None, RunAgain(command))
    assert f"```sh\n{command}\n```" in comparison_markdown(replace(timed_comparison(), findings=(finding,)))


def test_a_finding_is_a_bold_title_its_evidence_and_what_to_try_each_by_itself():
    command = Finding(WAITS, 2170.0, RunAgain("tracekit profile vit"))
    prose, told = Finding(WAITS, None, CompileLayers()), Finding(STATES, start_saving_us=9.48e6)
    title, evidence, code = WAITS.title(), WAITS.long(), CompileLayers().long()
    text = comparison_markdown(replace(timed_comparison(), findings=(command, prose, told)))
    assert (
        f"**warning: {title}** (up to 2.17 ms per call)\n\n{evidence}\n\n```sh\ntracekit profile vit\n```\n\n"
        f"**warning: {title}**\n\n{evidence}\n\nTry: {code}.\n\n"
    ) in text
    folded = f"<summary>info: {STATES.title()} (a warm cache saves 9.48 s per start)</summary>\n\n{STATES.long()}\n"
    assert folded in text


def test_details_are_folded_and_their_tables_are_still_markdown():
    text = bounded(["# Answer\n\n", _detail("A <b> & more", "| a |\n|---|\n| 1 |\n")])
    assert "<details><summary>A &lt;b&gt; &amp; more</summary>" in text
    page = html_of(text)
    assert "<td>1</td>" in page and page.count("<details>") == page.count("</details>") == 1
    assert "<b>" not in page


def test_what_is_no_detail_is_whole_however_much_stands_before_it():
    command = "## Reproduce\n\nthe command\n"
    text = bounded(["# Answer\n\n", _detail("Long", "x" * LONGEST), _detail("Short", "the short one"), command])
    assert text.startswith("# Answer") and command in text
    assert "the short one" in text and "xxx" not in text
    assert text.endswith("Left out for length: Long. The HTML page has all of it.\n")


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
    page = html_of(text)
    assert "<b>" not in page and "<em>" not in page and "<a " not in page


def test_parts_find_room_by_their_rank_and_stand_in_their_order():
    half = "x" * (LONGEST // 2)
    # The earlier of one rank comes before the later, where there is room for one.
    assert "Left out for length: second." in bounded([_detail("first", half), _detail("second", half)])
    parts = [Piece("late", f"1{half}", MORE_FINDINGS), Piece("table", f"2{half}", TABLES), Piece("gate", "3", FIRST)]
    text = bounded([*parts, _detail("small", "4"), "end\n"])
    places = [text.index(mark) for mark in ("2xx", "3", "<details>", "end")]
    assert places == sorted(places)
    assert "1xx" not in text and "Left out for length: late." in text


def test_a_table_has_as_many_rows_as_find_room_with_what_they_open_to():
    rows = tuple(
        ExplorerRow(at, f"row {at}", ("word",), (Figure("1.5", 1.5),), facts=(("Size", "x" * 100),))
        for at in range(LONGEST_OPENED // 100)
    )
    explorer = Explorer("", "rows", "", "Row", ("Kind",), ("time",), rows, "The note.", (("Kind", {"word": "one"}),))
    text = _text(explorer)
    kept = text.count("\n| row ")
    assert 0.9 * LONGEST_OPENED < len(text) < 1.1 * LONGEST_OPENED
    assert text.count("**: Size: x") == kept < len(rows)
    assert f"The note. Kind: word: one. {kept} of {len(rows)} rows; the HTML page has all of them.\n" in text
    table = Table("", columns("Row"), tuple((each.label,) for each in rows))
    assert _text(table).count("\n| row ") == len(rows)


def test_forty_long_findings_leave_the_gate_the_figures_and_the_first_of_them():
    long = NotComparable("e" * 1500, InOneOutputOnly())
    findings = tuple(Finding(OutputsDiffer("t" * 100, f"finding number {at}", long), 1.0) for at in range(40))
    comparison = timed_comparison()
    gate = check(comparison, parse_conditions("wall<=+3%"))
    text = comparison_markdown(replace(comparison, findings=findings, gate=gate), None, "the command")
    assert LONGEST - RESERVE - 2000 < len(text) < LONGEST
    assert "wall\\<=+3%" in text
    for told in ("Wall time, median", "From A to B", "Kernel groups", "the command", "finding number 0 "):
        assert told in text
    assert text.count("**warning: finding number") > 20
    assert "Left out for length: finding: finding number" in text


LINKED = (
    "https://evil.example/x",
    "see HTTP://evil.example, ftp://evil.example",
    "www.evil.example",
    "(WWW.evil.example) _www.evil.example",
    "@you and @org/team",
    "me@evil.example",
    "mailto:me@evil.example",
    "#123",
    "owner/repository#123 and owner#1",
    "GH-123 gh-1",
    "<https://evil.example>",
    "[x](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "https://www.evil.example/@you#1",
)
#: What cmark-gfm (0.29.0.gfm.13) and GitHub's filters make links of: addresses as they are written, and references as
#: they are shown, between one element and the next.
WRITTEN = re.compile(r"\w+://|www\.", re.IGNORECASE)
SHOWN = re.compile(r"@\w|#\d|\bgh-\d", re.IGNORECASE)


def is_linked(markdown: str) -> bool:
    """Whether anything but code becomes a link of GitHub's."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.DOTALL)
    shown = html.unescape(re.sub(r"\\(?=[^\w\s])", "", text))
    return any(map(SHOWN.search, re.split(r"<[^>]*>", shown))) or WRITTEN.search(text) is not None


@pytest.mark.parametrize("text", LINKED)
def test_nothing_becomes_a_link_and_all_reads_as_it_was_written(text: str) -> None:
    assert is_linked(text)
    assert not is_linked(escaped(text))
    page = html_of(escaped(text))
    assert "<a" not in page and "<img" not in page
    assert html.unescape(page.replace("<!-- -->", "")) == f"<p>{text}</p>\n"
    assert html.unescape(unlinked(html.escape(text)).replace("<!-- -->", "")) == text


@pytest.mark.parametrize("text", LINKED)
def test_a_twin_has_no_links_of_a_stranger_s_whatever_holds_them(text: str) -> None:
    kernels = {text: ("pointwise", 4, 400.0), f"void f<{text}>(int)": ("gemm", 2, 300.0)}
    waits = SynchronisingCalls(text, 1.0, [text], 1.0, 9.0, [OperatorCall(text, text)])
    findings = (Finding(STATES.but(component=text)), Finding(waits))
    other = make_side(f"b {text}", make_analysis({"x": ("gemm", 1, 9.0)}))
    notes = (DamagedRecording(text, SkippedEvents(1, reasons={text: 1})),)
    told = compare(make_side(text, make_analysis(kernels)), other)
    told = replace(told, findings=findings, notes=notes)
    markdown = comparison_markdown(told, make_run(notes=(text,), size_reason=text), f"tracekit compare {text}")
    assert not is_linked(markdown)
    # Nothing in code becomes one: there it stands as it is.
    assert f"tracekit compare {text}" in markdown


def test_the_terminal_has_a_kernel_group_once_with_what_it_opens_to_and_its_place_among_all() -> None:
    where, members = ("model.norm", "model.py:3"), (Member("A", Name("norm", "norm"), "1.5"),)
    rows = (
        ExplorerRow(0, "row 0", ("word",), (Figure("1.5", 1.5),), place="model.norm", members=members, where=where),
        ExplorerRow(1, "row 1", ("word",), (Figure("1.5", 1.5),), facts=(("Size", "4x4"),)),
    )
    explorer = Explorer("", "rows", "", "Row", ("Kind",), ("time",), rows, "")
    text = details_of(Report("", Overview("", ""), (Section("", "", (Part(explorer, TABLES),)),)))
    assert [text.count(told) for told in ("row 0", "row 1", "model.norm", "4x4", "- ")] == [1, 1, 1, 1, 0]
    assert "| row 0 | model.norm, model.py:3 | word | 1.5 |" in text
    assert "| Row | Where | Kind | time | Size |" in text
