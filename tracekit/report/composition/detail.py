"""How much the terminal shows of a report: its verdict, thirty lines, or everything."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.model.single_run import SingleRun
from tracekit.model.sweep_figures import Sweep
from tracekit.report.composition import summaries
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.composition.overview_several import comparisons_overview
from tracekit.report.composition.overview_side import MOST_KERNELS, side_overview
from tracekit.report.composition.overview_sweep import sweep_overview
from tracekit.report.document import Line, Overview, Summary
from tracekit.report.terminal import as_html
from tracekit.report.thirty_lines import BLANK, WIDTH, overview_lines, reason_lines, verdict_lines

Detail = Literal["verdict", "brief", "all"]


def comparison_text(
    comparison: Comparison, page: Path, open_it: str, detail: Detail = "brief", width: int = WIDTH, repeat: str = ""
) -> Summary:
    """`page` is where the page lies, `open_it` the command that shows the timeline, `width` that of the terminal,
    `repeat` the command that measures it again."""
    if detail == "all":
        return *summaries.comparison_summary(comparison, (open_it,)), *_written(page)
    return _shown(
        replace(comparison_overview(comparison), repeat=repeat), page, (f"Timeline: {open_it}",), detail, width
    )


def comparisons_text(
    compared: Comparisons, page: Path, look_at: str, detail: Detail = "brief", width: int = WIDTH
) -> Summary:
    """`look_at` is the command that shows one of the runs."""
    if detail == "all":
        return *summaries.comparisons_summary(compared, (look_at,)), *_written(page)
    return _shown(comparisons_overview(compared), page, (look_at,), detail, width)


def sweep_text(sweep: Sweep, page: Path, detail: Detail = "brief", width: int = WIDTH) -> Summary:
    if detail == "all":
        return *summaries.sweep_summary(sweep), *_written(page)
    return _shown(sweep_overview(sweep), page, (), detail, width)


def analysis_text(
    single: SingleRun,
    page: Path | None,
    more: tuple[str, ...] = (),
    detail: Detail = "brief",
    top: int | None = None,
    width: int = WIDTH,
) -> Summary:
    """`page` is None where none was written, `more` is said after it, `top` is how many kernels are listed."""
    overview = side_overview(single, top or MOST_KERNELS)
    if detail == "all":
        said = tuple(Line(each, unbroken=True) for each in more)
        why = (*verdict_lines(overview), *reason_lines(overview), BLANK) if single.nothing_compiled else ()
        return *why, *summaries.analysis_summary(single.side, top=top or 10), *said, *(_written(page) if page else ())
    return _shown(overview, page, more, detail, width)


def overview_html(overview: Overview) -> str:
    """The thirty lines as an element of HTML, for a notebook."""
    return as_html(overview_lines(overview, None), WIDTH)


def _shown(overview: Overview, page: Path | None, more: tuple[str, ...], detail: Detail, width: int) -> Summary:
    report = (f"Report {page}",) if page else ()
    if detail == "verdict":
        return *verdict_lines(overview), *(Line(each, "dim", unbroken=True) for each in report)
    return overview_lines(overview, (*report, *more), width)


def _written(page: Path) -> tuple[Line, ...]:
    """Where the page and its markdown twin are."""
    return tuple(Line(f"written: {path}", unbroken=True) for path in (page, page.with_suffix(".md")))
