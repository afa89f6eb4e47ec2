"""Page, twin and terminal show nothing that steers whoever reads them, in whichever block or field it stands."""

from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tracekit.report import document as doc
from tracekit.report.markdown import details_of, markdown_of
from tracekit.report.page import page_of
from tracekit.report.plotly_figures import figures_of
from tracekit.report.terminal import as_html
from tracekit.report.thirty_lines import Detail, shown_overview

from .showing import printed, unpacked

#: A title, a bell, the other writing direction, a colour by one character, and the line's begin.
EVIL = "a\x1b]0;x\x07b\u202ec\x9b31md\re"
STEERING = {"\x1b", "\x07", "\u202e", "\x9b", "\r"}
#: Fields that choose among what the renderers know, of which nothing is shown.
CHOICES: dict[str, Any] = {
    **dict.fromkeys(("style", "lead_style"), "bold"),
    "severity": "warning",
    "ends_as": "fail",
    "conditions": (("fail", EVIL),),
    "pieces": ((EVIL, "bold"),),
    "blocks": (doc.Bullets(EVIL, (EVIL,)),),
    "children": (),
    "labels": (EVIL, EVIL),
    "us": (1.0, 2.0),
    "half_us": (),
    "sums": False,
    "data": {"linked": True, "textures": {EVIL: EVIL}},
}


def evil(kind: Any) -> Any:
    """One of this type, each of whose texts steers."""
    parts = [each for each in get_args(kind) if each not in (Ellipsis, type(None))]
    if get_origin(kind) in (UnionType, Union):
        return evil(parts[0])
    if get_origin(kind) is tuple:
        return tuple(map(evil, parts))
    if get_origin(kind) is dict:
        return {evil(parts[0]): evil(parts[1])}
    if issubclass(kind, Struct):
        hints = get_type_hints(kind, vars(doc))
        return kind(**{name: CHOICES[name] if name in CHOICES else evil(hint) for name, hint in hints.items()})
    return EVIL if kind is str else kind(1)


NAME, COMMAND = evil(doc.Name), replace(evil(doc.Name), is_command=True)
CELLS = doc.Table(EVIL, doc.columns(EVIL, EVIL, EVIL, figures=[EVIL]), ((EVIL, NAME, COMMAND, EVIL),), EVIL)
BLOCKS = (*map(evil, get_args(doc.Block)), CELLS)


def assert_harmless(text: str) -> None:
    assert not STEERING & {*text} and "\N{REPLACEMENT CHARACTER}" in text


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
@pytest.mark.parametrize("unfolded", [False, True])
def test_no_block_of_a_report_steers(block: doc.Block, unfolded: bool) -> None:
    part = doc.Part(block, doc.FIRST if unfolded else doc.DETAILS)
    report = doc.Report(EVIL, evil(doc.Overview), (doc.Section(EVIL, EVIL, (part,), EVIL, EVIL if unfolded else ""),))
    page = page_of(report)
    assert_harmless(page)
    assert not STEERING & {*unpacked(page)}
    assert_harmless(markdown_of(report))
    assert not STEERING & {*printed((doc.Markdown(details_of(report)),), 60)}


@pytest.mark.parametrize("part", [doc.Line, doc.Table])
def test_no_part_of_a_summary_steers_a_terminal_or_a_notebook(part: Any) -> None:
    whole = evil(part)
    styled = doc.Table("", doc.columns(EVIL, EVIL), ((evil(doc.Styled), NAME),), EVIL)
    summary = (whole, styled, CELLS, *([replace(whole, lead="", unbroken=True)] if part is doc.Line else []))
    assert_harmless(printed(summary, 100))
    assert_harmless(as_html(summary, 100))


@pytest.mark.parametrize("detail", get_args(Detail))
@pytest.mark.parametrize("width", [60, 100])
def test_no_overview_steers_a_terminal(detail: Detail, width: int) -> None:
    assert_harmless(printed(shown_overview(evil(doc.Overview), None, None, (EVIL,), detail, width), width))


def test_no_label_of_a_chart_steers() -> None:
    assert_harmless(figures_of([evil(doc.Chart)])[EVIL].layout.title.text)
