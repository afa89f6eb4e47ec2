"""What the terminal shows of a run that was interrupted."""

from statistics import median

from tracekit.model.run import Run
from tracekit.numbers import count, duration
from tracekit.report.document import BLANK, Line, Summary, Table, columns


def interrupted_summary(run: Run) -> Summary:
    """What an interrupted run has measured: its forms, and the median of the calls that were timed."""
    rows = tuple(
        (
            form.name,
            count(len(form.warmup_us)),
            count(len(form.wall_us)),
            duration(median(form.steady_us) if form.wall_us else None),
            ", ".join(each.kind for each in form.recordings) or "none",
        )
        for form in run.forms
    )
    heads = columns("Form", figures=("warm-up calls", "timed calls", "median", "recordings"))
    told = f"Interrupted run, not complete: {run.settings.workload} at size {run.settings.size}"
    return Line(told, "bold"), Table("", heads, rows), BLANK
