"""Reports and summaries as text, as commands show them."""

import base64
import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.model.single_run import SingleRun
from tracekit.report.composition import reports
from tracekit.report.document import Cell, Report, Summary, Table
from tracekit.report.markdown import markdown_of
from tracekit.report.page import page_of
from tracekit.report.terminal import shown
from tracekit.report.thirty_lines import Detail, shown_overview


def texts(report: Callable[..., Report]) -> tuple[Callable[..., str], Callable[..., str]]:
    """What makes its page, and what makes its twin."""
    return lambda *args: page_of(report(*args)), lambda *args: markdown_of(report(*args))


side_page, side_markdown = texts(reports.side_report)
comparison_page, comparison_markdown = texts(reports.comparison_report)
comparisons_page, comparisons_markdown = texts(reports.comparisons_report)


def printed(summary: Summary, width: int = 80, *, colours: bool = False, crop: bool = True) -> str:
    """What a terminal of that width shows, without spaces at the ends of lines."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colours, color_system="standard" if colours else None)
    console.print(shown(summary), crop=crop)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


PAGE, OPEN = Path("reports/page.html"), "tracekit open traces/run"


def terminal_text(
    found: Comparison | Comparisons | SingleRun,
    detail: Detail = "brief",
    width: int = 100,
    *,
    repeat: str = "",
    more: str = OPEN,
    colours: bool = False,
    crop: bool = True,
) -> str:
    """What commands show of it."""
    match found:
        case Comparison():
            report = reports.comparison_report(found, repeat=repeat)
        case Comparisons():
            report = reports.comparisons_report(found)
        case SingleRun():
            report = reports.side_report(found)
    summary = shown_overview(report.overview, report, PAGE, (more,), detail, width)
    return printed(summary, width, colours=colours, crop=crop)


def rows_of(table: Table | None) -> dict[str, tuple[Cell, ...]]:
    """The cells of each row after its first, by that."""
    assert table is not None
    return {str(row[0]): row[1:] for row in table.rows}


def text_of(page: str) -> str:
    """What a page says, without its scripts."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def unpacked(page: str) -> str:
    """What the rows of a page open to, as HTML."""
    packed = re.findall(r'class="packed">(.*?)</script>', page)
    return "".join(gzip.decompress(base64.b64decode(each)).decode() for each in packed)


def written(tmp_path: Path, page: str) -> Path:
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    return path
