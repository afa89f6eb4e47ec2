"""How much the terminal shows of a report: its verdict, thirty lines, or everything."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.model.single_run import SingleRun
from tracekit.model.sweep_figures import Sweep
from tracekit.report.composition import brief, brief_analysis, brief_several, brief_sweep, summaries
from tracekit.report.document import Line, Summary

Detail = Literal["verdict", "brief", "all"]


def comparison_text(
    comparison: Comparison, page: Path, open_it: str, detail: Detail = "brief", width: int = brief.WIDTH
) -> Summary:
    """`page` is where the page lies, `open_it` the command that shows the timeline, `width` that of the terminal."""
    if detail == "all":
        return *summaries.comparison_summary(comparison, (open_it,)), *written(page)
    if detail == "verdict":
        return *brief.verdict_lines(comparison), report_line(page)
    return brief.comparison_brief(comparison, str(page), open_it, width)


def comparisons_text(compared: Comparisons, page: Path, look_at: str, detail: Detail = "brief") -> Summary:
    """`look_at` is the command that shows one of the runs."""
    if detail == "all":
        return *summaries.comparisons_summary(compared, (look_at,)), *written(page)
    if detail == "verdict":
        return brief_several.verdict_line(compared), report_line(page)
    return brief_several.comparisons_brief(compared, str(page), look_at)


def sweep_text(sweep: Sweep, page: Path, detail: Detail = "brief") -> Summary:
    if detail == "all":
        return *summaries.sweep_summary(sweep), *written(page)
    if detail == "verdict":
        return brief_sweep.verdict_line(sweep), report_line(page)
    return brief_sweep.sweep_brief(sweep, str(page))


def analysis_text(
    single: SingleRun,
    page: Path | None,
    commands: Sequence[str] = (),
    detail: Detail = "brief",
    top: int | None = None,
    width: int = brief.WIDTH,
) -> Summary:
    """`page` is None where none was written, `commands` are worth typing next, `top` is how many kernels are listed."""
    if detail == "all":
        nothing = single.nothing_compiled
        why = brief_analysis.reason_lines(nothing, width) if nothing else ()
        told = (*brief_analysis.verdict_lines(single), brief.BLANK, *why, brief.BLANK) if nothing else ()
        return *told, *summaries.analysis_summary(single.side, top=top or 10), *(written(page) if page else ())
    if detail == "verdict":
        return *brief_analysis.verdict_lines(single), *([report_line(page)] if page else [])
    return brief_analysis.analysis_brief(single, str(page) if page else None, commands, top, width)


def report_line(page: Path) -> Line:
    return Line(f"Report {page}", "dim", unbroken=True)


def written(page: Path) -> tuple[Line, ...]:
    """Where the page and its markdown twin are."""
    return tuple(Line(f"written: {path}", unbroken=True) for path in (page, page.with_suffix(".md")))
