from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from tests.report.showing import comparison_markdown

from tracekit.comparison import compare
from tracekit.model.advice import Action
from tracekit.model.comparison import Finding
from tracekit.model.note import Note
from tracekit.report.markdown import escaped, unlinked

from ..sides import make_analysis, make_run, make_side

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


def damage(text: str) -> Note:
    return Note(
        "damaged_recording", "error", text, {"health": "skipped_events", "count": 1, "facts": {"reasons": {text: 1}}}
    )


@pytest.mark.parametrize("text", LINKED)
def test_nothing_becomes_a_link_and_all_reads_as_it_was_written(text: str) -> None:
    assert is_linked(text)
    assert not is_linked(escaped(text))
    page = MarkdownIt("commonmark", {"html": True}).render(escaped(text))
    assert "<a" not in page and "<img" not in page
    assert html.unescape(page.replace("<!-- -->", "")) == f"<p>{text}</p>\n"
    assert html.unescape(unlinked(html.escape(text)).replace("<!-- -->", "")) == text


@pytest.mark.parametrize("text", LINKED)
def test_a_twin_has_no_links_of_a_stranger_s_whatever_holds_them(text: str) -> None:
    kernels = {text: ("pointwise", 4, 400.0), f"void f<{text}>(int)": ("gemm", 2, 300.0)}
    facts = {
        "side": text,
        "copies": 1,
        "copy_us": 1.0,
        "idle_us": 1.0,
        "call_us": 9.0,
        "made_by": [{"operator": text, "called_at": text}],
    }
    finding = Finding("pageable_copies", "info", facts, None, Action("pin_memory"))
    told = compare(
        make_side(text, make_analysis(kernels)), make_side(f"b {text}", make_analysis({"x": ("gemm", 1, 9.0)}))
    )
    told = replace(told, findings=(finding, replace(finding, severity="warning")), notes=(damage(text),))
    markdown = comparison_markdown(told, make_run(notes=(text,), size_reason=text), f"tracekit compare {text}")
    assert not is_linked(markdown)
    # Nothing in code becomes one: there it stands as it is.
    assert f"tracekit compare {text}" in markdown
