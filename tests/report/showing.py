"""Reports and summaries as text, as commands show them."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from tracekit.report.composition import reports
from tracekit.report.document import Report, Summary
from tracekit.report.markdown import markdown_of
from tracekit.report.page import page_of
from tracekit.report.terminal import shown


def side_page(*args: Any) -> str:
    return page_of(reports.side_report(*args))


def side_markdown(*args: Any) -> str:
    return markdown_of(reports.side_report(*args))


def comparison_page(*args: Any) -> str:
    return page_of(reports.comparison_report(*args))


def comparison_markdown(*args: Any) -> str:
    return markdown_of(reports.comparison_report(*args))


def comparisons_page(*args: Any) -> str:
    return page_of(reports.comparisons_report(*args))


def comparisons_markdown(*args: Any) -> str:
    return markdown_of(reports.comparisons_report(*args))


def sweep_page(*args: Any) -> str:
    return page_of(reports.sweep_report(*args))


def sweep_markdown(*args: Any) -> str:
    return markdown_of(reports.sweep_report(*args))


def both_texts(report: Report) -> tuple[str, str]:
    """The page and its twin."""
    return page_of(report), markdown_of(report)


def printed(summary: Summary, width: int = 80, *, colours: bool = False) -> str:
    """What a terminal of that width shows, without spaces at the ends of lines."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colours, color_system="standard" if colours else None)
    console.print(shown(summary))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
