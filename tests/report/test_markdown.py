from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tests.report.showing import comparison_markdown

from tracekit import store
from tracekit.comparison import compare
from tracekit.model.advice import Action
from tracekit.model.comparison import Finding
from tracekit.report.markdown import LONGEST, escaped
from tracekit.report.words.findings import finding_advice, finding_evidence, finding_title
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side

from ..sides import make_analysis, make_run, make_side
from .conftest import (
    HOSTILE_NAMES,
    bare_comparison,
    cpu_comparison,
    hostile_comparison,
    matched_comparison,
    timed_comparison,
)

RUN = Path(__file__).parents[2] / "traces" / "h200-vit"


def html_of(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def test_a_comparison_is_told_in_full(markdown_file):
    command = "tracekit profile flux --compiled"
    assert comparison_markdown(timed_comparison(), make_run(), command) == markdown_file


def test_bare_traces_are_told_without_a_verdict(markdown_file):
    assert comparison_markdown(bare_comparison()) == markdown_file


def test_groups_of_two_real_traces_are_told_with_their_evidence(markdown_file):
    assert comparison_markdown(matched_comparison()) == markdown_file


def test_a_cpu_comparison_is_told_without_gpu_figures(markdown_file):
    assert comparison_markdown(cpu_comparison()) == markdown_file


def test_hostile_names_are_no_html_and_break_no_table():
    text = comparison_markdown(hostile_comparison())
    page = html_of(text)
    assert "<script" not in page
    assert "<img" not in page
    assert 'onerror="' not in page
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)
    assert page.count("<table>") == text.count("\n|---") + text.count("\n|--:")


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "+ one", "- one", "12. one", "12) one", "=== one", "1.5 ms"])
def test_escaped_text_reads_as_it_was_written(name):
    from tracekit.names import printable

    opened, token, closed = MarkdownIt("commonmark").parse(escaped(name))
    assert (opened.type, closed.type) == ("paragraph_open", "paragraph_close")
    shown = (child.content for child in token.children or () if child.content != "<!-- -->")
    assert "".join(shown).strip() == printable(name).strip()


def test_a_comparison_of_very_many_kernels_stays_within_what_a_comment_holds():
    kernels = {f"kernel_{i}_" + "x" * 200: ("pointwise", 1 + i % 7, 5.0 + i) for i in range(3000)}
    others = {f"other_{i}_" + "<" * 200: ("pointwise", 1 + i % 7, 5.0 + i) for i in range(3000)}
    comparison = compare(make_side("a", make_analysis(kernels)), make_side("b", make_analysis(others)))
    run = make_run(notes=("*" * 300,) * 200)
    assert len(comparison_markdown(comparison, run, "x")) < LONGEST
    assert "Left out for length: " in comparison_markdown(comparison, run, "x")


WAITS = {"wall_us": 1000.0, "idle_us": 500.0, "host_share": 0.9}


def test_a_command_to_try_is_whole_however_long_it_is():
    command = "tracekit profile qwen2.5-vl " + " ".join(f"--option-{n} value" for n in range(20))
    finding = Finding("launch_bound", "warning", WAITS, None, Action("run_again", command))
    assert f"```sh\n{command}\n```" in comparison_markdown(replace(timed_comparison(), findings=(finding,)))


def test_a_finding_is_a_bold_title_its_evidence_and_what_to_try_each_by_itself():
    command = Finding("launch_bound", "warning", WAITS, 2170.0, Action("run_again", "tracekit profile vit"))
    prose = replace(command, severity="error", saving_us=None, action=Action("compile_layers"))
    told = replace(command, severity="info", saving_us=None, action=None, start_saving_us=9.48e6)
    title, evidence, code = finding_title(command), finding_evidence(command), finding_advice(prose)
    text = comparison_markdown(replace(timed_comparison(), findings=(command, prose, told)))
    assert (
        f"**warning: {title}** (up to 2.17 ms per step)\n\n{evidence}\n\n```sh\ntracekit profile vit\n```\n\n"
        f"**error: {title}**\n\n{evidence}\n\nTry: {code}.\n\n"
    ) in text
    assert f"<summary>info: {title} (a warm cache saves 9.48 s of a start)</summary>\n\n{evidence}\n" in text


def test_of_a_real_run_the_answer_comes_first_and_what_is_not_folded_fits_two_screens():
    sides = tuple(load_side(RUN, form=form, reading=Reading(shapes=True)) for form in ("eager", "compiled"))
    run = store.load(RUN)
    text = comparison_markdown(compare(*sides, run.order), run, "tracekit compare x")
    unfolded = re.sub(r"<details>.*?</details>\n*", "", text, flags=re.DOTALL).splitlines()
    assert unfolded[0].startswith("# Compiled is 1.1")
    assert unfolded.index("## Findings") < 25
    assert len([line for line in unfolded if line]) <= 40
