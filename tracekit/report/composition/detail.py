"""What the terminal shows of each kind of report: its verdict, thirty lines, or these and everything else. Each kind
imports its own words: a command shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracekit.report.thirty_lines import WIDTH, Detail, overview_lines, shown_overview

if TYPE_CHECKING:
    from pathlib import Path

    from tracekit.model.comparison import Comparison
    from tracekit.model.comparisons import Comparisons
    from tracekit.model.single_run import SingleRun
    from tracekit.report.document import Overview, Summary


def comparison_text(
    comparison: Comparison, page: Path, open_it: str, detail: Detail = "brief", width: int = WIDTH, repeat: str = ""
) -> Summary:
    """`page` is where the page lies, `open_it` the command that shows the timeline, `width` that of the terminal,
    `repeat` the command that measures it again."""
    from tracekit.report.composition.overview import comparison_overview

    all_else: Summary = ()
    if detail == "all":
        from tracekit.report.composition.summaries import comparison_details

        all_else = comparison_details(comparison)
    return shown_overview(
        comparison_overview(comparison, repeat), all_else, page, (f"Timeline: {open_it}",), detail, width
    )


def comparisons_text(
    compared: Comparisons, page: Path, look_at: str, detail: Detail = "brief", width: int = WIDTH
) -> Summary:
    """`look_at` is the command that shows one of the runs."""
    from tracekit.report.composition.overview_several import comparisons_overview

    all_else: Summary = ()
    if detail == "all":
        from tracekit.report.composition.summaries import comparisons_details

        all_else = comparisons_details(compared)
    return shown_overview(comparisons_overview(compared), all_else, page, (look_at,), detail, width)


def analysis_text(
    single: SingleRun,
    page: Path | None,
    more: tuple[str, ...] = (),
    detail: Detail = "brief",
    top: int | None = None,
    width: int = WIDTH,
) -> Summary:
    """`page` is None where none was written, `more` is said after it, `top` is how many kernels are listed."""
    from tracekit.report.composition.overview_side import MOST_KERNELS, side_overview

    overview = side_overview(single, top or (10 if detail == "all" else MOST_KERNELS))
    all_else: Summary = ()
    if detail == "all":
        from tracekit.report.composition.summaries import analysis_details

        all_else = analysis_details(single)
    return shown_overview(overview, all_else, page, more, detail, width)


def overview_html(overview: Overview) -> str:
    """The thirty lines as an element of HTML, for a notebook."""
    from tracekit.report.terminal import as_html

    return as_html(overview_lines(overview, None), WIDTH)
