"""What the terminal shows of a sweep: its verdict, thirty lines, or these and every cell."""

from pathlib import Path

from tracekit.report.composition.summaries import lines
from tracekit.report.document import BLANK, Commands, GroupedTable, Line, Summary
from tracekit.report.thirty_lines import WIDTH, Detail, shown_overview
from tracekit.sweep.figures import CellFigures, Sweep
from tracekit.sweep.report import words as sweeping
from tracekit.sweep.report.labels import Labels, label, named_cells
from tracekit.sweep.report.overview import TONES, sweep_overview

#: Of more works than this, what is best for each is for the page.
MOST_WORKS = 8
#: Columns of a sweep's cells; the speed-up may take two lines.
CELL_COLUMNS = ("way", "eager\nms", "compiled\nms", "speed-up\n(95 %)", "compile\ns", "even\nafter")
WHENCE = (
    "A line is one process: both medians and the speed-up over its rounds, colour by its verdict. Means, intervals and"
    " eager over all processes are in the report."
)
WHENCE_SEVERAL = (
    "A line is a cell, over its processes: both medians and the speed-up, colour by its verdict. Each process is in the"
    " report."
)
EVEN = "Upper break-even: eager's start-up is not subtracted. The report has both ends."


def sweep_text(sweep: Sweep, page: Path, detail: Detail = "brief", width: int = WIDTH) -> Summary:
    all_else = sweep_details(sweep) if detail == "all" else ()
    return shown_overview(sweep_overview(sweep), all_else, page, (), detail, width)


def sweep_details(sweep: Sweep) -> Summary:
    """Every cell, what failed, and for few works what is best for what."""
    labels = label(sweep)
    groups = tuple((labels.of(work), tuple(_cell(cell, labels) for cell in work.cells)) for work in sweep.works)
    failed = [
        f"{work}, {way}: {sweeping.OUTCOMES[cell.outcome]}: {cell.failure.message}"
        for work, way, cell in named_cells(sweep)
        if cell.failure
    ]
    best: list[Line | Commands] = []
    for work in sweep.works:
        for each in work.best:
            goal = sweeping.goal_words(each.goal, each.calls).lower()
            best.append(Line(f"{labels.of(work)}: {goal}: {sweeping.best_words(each, labels, work)}"))
            best += [Commands(each.candidates[0].command)] if each.clear else []
    cells, whence = sweep.cells, WHENCE_SEVERAL if sweep.has_processes else WHENCE
    return (
        GroupedTable(CELL_COLUMNS, groups, parted=3),
        BLANK,
        *lines((whence if any(cell.verdict for cell in cells) else None,), style="dim"),
        *lines((EVEN if any(cell.break_even and cell.break_even.calls for cell in cells) else None,), style="dim"),
        *lines(failed, style="red"),
        *((BLANK, *best) if len(sweep.works) <= MOST_WORKS else ()),
    )


def _cell(cell: CellFigures, labels: Labels) -> tuple[tuple[str, str], ...]:
    style = "red" if cell.failure else TONES.get(cell.result or "", "")
    return (
        (labels.way(cell.cell), ""),
        (sweeping.milliseconds(cell.eager.median_us if cell.eager else None), ""),
        (sweeping.milliseconds(cell.compiled.median_us if cell.compiled else None), ""),
        (sweeping.speedup(cell), style),
        (sweeping.seconds(cell.compile_seconds), ""),
        (sweeping.even_at_most(cell), ""),
    )
