"""What the terminal shows of each kind of report: its verdict, thirty lines, or these and everything else."""

from pathlib import Path

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.model.single_run import SingleRun
from tracekit.model.sweep_figures import Sweep
from tracekit.report.composition import summaries
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.composition.overview_several import comparisons_overview
from tracekit.report.composition.overview_side import MOST_KERNELS, side_overview
from tracekit.report.composition.overview_sweep import sweep_overview
from tracekit.report.document import Overview, Summary
from tracekit.report.terminal import as_html
from tracekit.report.thirty_lines import WIDTH, Detail, overview_lines, shown_overview


def comparison_text(
    comparison: Comparison, page: Path, open_it: str, detail: Detail = "brief", width: int = WIDTH, repeat: str = ""
) -> Summary:
    """`page` is where the page lies, `open_it` the command that shows the timeline, `width` that of the terminal,
    `repeat` the command that measures it again."""
    overview = comparison_overview(comparison, repeat)
    all_else = summaries.comparison_details(comparison) if detail == "all" else ()
    return shown_overview(overview, all_else, page, (f"Timeline: {open_it}",), detail, width)


def comparisons_text(
    compared: Comparisons, page: Path, look_at: str, detail: Detail = "brief", width: int = WIDTH
) -> Summary:
    """`look_at` is the command that shows one of the runs."""
    all_else = summaries.comparisons_details(compared) if detail == "all" else ()
    return shown_overview(comparisons_overview(compared), all_else, page, (look_at,), detail, width)


def sweep_text(sweep: Sweep, page: Path, detail: Detail = "brief", width: int = WIDTH) -> Summary:
    all_else = summaries.sweep_details(sweep) if detail == "all" else ()
    return shown_overview(sweep_overview(sweep), all_else, page, (), detail, width)


def analysis_text(
    single: SingleRun,
    page: Path | None,
    more: tuple[str, ...] = (),
    detail: Detail = "brief",
    top: int | None = None,
    width: int = WIDTH,
) -> Summary:
    """`page` is None where none was written, `more` is said after it, `top` is how many kernels are listed."""
    overview = side_overview(single, top or (10 if detail == "all" else MOST_KERNELS))
    all_else = summaries.analysis_details(single) if detail == "all" else ()
    return shown_overview(overview, all_else, page, more, detail, width)


def overview_html(overview: Overview) -> str:
    """The thirty lines as an element of HTML, for a notebook."""
    return as_html(overview_lines(overview, None), WIDTH)
