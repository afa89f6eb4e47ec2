"""Several ways to compile as one HTML page that needs no network: one column a form."""

from __future__ import annotations

from tracekit.model.comparisons import Comparisons
from tracekit.report.beside import shared_tables
from tracekit.report.charts import by_id, side_charts, waterfall_chart
from tracekit.report.method import TIMELINES_BY_NAME, how_measured
from tracekit.report.rendering import render_page, those
from tracekit.report.sections.kernels import top_kernels_table
from tracekit.report.sections.timing import timing_table
from tracekit.report.sections.waterfall import waterfall_table
from tracekit.report.several.tables import ends_of, figures_table, run_table, sides_of
from tracekit.report.several.words import grave, headline, key_figures, notes_of_runs, sentences, subjects
from tracekit.report.timelines import timelines_by_name
from tracekit.report.words.common import scope_of
from tracekit.report.words.notes import note_sentences

#: Kernels of one form that are listed: there are several forms.
TOP_KERNELS = 8


def comparisons_page(told: Comparisons, command: str | None = None) -> str:
    """One offline HTML file; `command` is the one that makes it anew."""
    sides = sides_of(told)
    falls = [waterfall_chart(each, f"waterfall-{at}", ends_of(each)) for at, each in enumerate(told.comparisons)]
    drawn = timelines_by_name(sides)
    return render_page(
        "several.html.j2",
        charts={**by_id(*falls), **side_charts(sides)},
        timelines=drawn,
        tables={
            **shared_tables(sides, limit=3),
            "figures": figures_table(told),
            "runs": run_table(told),
            "top": those(top_kernels_table(side, letter, limit=TOP_KERNELS) for letter, side in sides),
            "numerics": None,
            "timing": those((timing_table(sides),)),
            "components": None,
        },
        title=headline(told),
        one=False,
        run=None,
        command=command,
        subject=subjects(told),
        scope=scope_of(sides),
        told=told,
        waterfalls=[
            (f"waterfall-{at}", waterfall_table(each, ends_of(each))) for at, each in enumerate(told.comparisons)
        ],
        sentences=sentences(told),
        grave=grave(told),
        warnings=note_sentences(told.notes),
        notes_of_runs=notes_of_runs(told),
        key_figures=key_figures(told),
        method=(
            *how_measured(told.comparisons[0], None),
            *([("Moment by moment", TIMELINES_BY_NAME)] if drawn else ()),
        ),
        on_cpu=all(side.analysis.gpu is None for _, side in sides),
    )
