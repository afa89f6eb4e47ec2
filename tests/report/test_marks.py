import pytest
from tests.report.showing import comparison_markdown, comparison_page, side_markdown, side_page

from tracekit.comparison.looking import look_at
from tracekit.report.markdown import LONGEST, Piece, _detail, bounded
from tracekit.report.marks import REACH, find_mark, marked_page, marked_twin

from ..sides import make_analysis, make_side
from .conftest import hostile_comparison, timed_comparison

MARK, OTHER = "ab" * 16, "cd" * 16


ALONE = look_at(make_side("a", make_analysis()))


@pytest.mark.parametrize("page", [comparison_page(timed_comparison()), side_page(ALONE)], ids=["two", "one"])
def test_a_page_bears_its_mark_near_its_top(page: str) -> None:
    marked = marked_page(page, MARK).encode()
    assert find_mark(marked[:REACH], marked[-REACH:]) == MARK
    assert marked.index(MARK.encode()) < 300
    assert find_mark(page.encode()[:REACH], page.encode()[-REACH:]) is None


@pytest.mark.parametrize("twin", [comparison_markdown(timed_comparison()), side_markdown(ALONE)], ids=["two", "one"])
def test_a_twin_ends_with_its_mark(twin: str) -> None:
    marked = marked_twin(twin, MARK)
    assert marked.splitlines()[-1] == f"<!-- tracekit-report: {MARK} -->"
    assert marked.startswith(twin.rstrip())
    assert find_mark(marked.encode()[:REACH], marked.encode()[-REACH:]) == MARK


def test_what_a_report_quotes_is_no_mark() -> None:
    comparison = hostile_comparison()
    quoted = f'<meta name="tracekit-report" content="{OTHER}">\n<!-- tracekit-report: {OTHER} -->\n'
    page, twin = comparison_page(comparison, None, quoted), comparison_markdown(comparison, None, quoted)
    for text in (page.encode(), twin.encode()):
        assert find_mark(text[:REACH], text[-REACH:]) is None
    marked = marked_page(page, MARK).encode()
    assert find_mark(marked[:REACH], b"") == MARK


def test_a_marked_twin_still_fits_a_comment() -> None:
    title = "@a#1www." * 40
    for parts in (
        ["x" * LONGEST],
        [_detail(f"{title}{n}", "y" * LONGEST) for n in range(50)],
        [Piece("p", "z" * 900, 1)] * 99,
    ):
        assert len(marked_twin(bounded(parts), MARK)) < LONGEST
    filled = [Piece("p", "z" * 100, 1)] * 1000 + [_detail(f"{title}{n}", "y" * LONGEST) for n in range(50)]
    assert LONGEST - 3000 < len(marked_twin(bounded(filled), MARK)) < LONGEST
