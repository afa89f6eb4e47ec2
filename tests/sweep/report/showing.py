"""A sweep as text, as commands show it."""

from tests.report.showing import PAGE, printed, texts

from tracekit.report.thirty_lines import Detail, shown_overview
from tracekit.sweep.figures import Sweep
from tracekit.sweep.report.sections import sweep_overview, sweep_report

sweep_page, sweep_markdown = texts(sweep_report)


def sweep_terminal(sweep: Sweep, detail: Detail, width: int, *, crop: bool = True) -> str:
    """What a terminal of that width shows."""
    summary = shown_overview(sweep_overview(sweep), sweep_report(sweep), PAGE, (), detail, width)
    return printed(summary, width, crop=crop)
