"""A sweep as text, as commands show it."""

from tests.report.showing import PAGE, printed, texts

from tracekit.sweep.figures import Sweep
from tracekit.sweep.report.details import sweep_text
from tracekit.sweep.report.sections import sweep_report

sweep_page, sweep_markdown = texts(sweep_report)


def sweep_in_full(sweep: Sweep, width: int = 80) -> str:
    """What a terminal shows that is asked for all."""
    return printed(sweep_text(sweep, PAGE, "all", width), width)
