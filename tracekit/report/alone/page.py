"""One run or trace as one HTML page that needs no network."""

from __future__ import annotations

from tracekit.model.alone import Alone
from tracekit.model.run import Run
from tracekit.report.alone.words import headline, key_figures, sentences, warnings
from tracekit.report.beside import shared_tables
from tracekit.report.charts import side_charts
from tracekit.report.lettered import lettered
from tracekit.report.method import how_one_was_measured
from tracekit.report.rendering import render_page, those
from tracekit.report.sections.alone import figures_table
from tracekit.report.sections.every_kernel import every_kernel
from tracekit.report.sections.setting import component_table
from tracekit.report.sections.timing import timing_table
from tracekit.report.timelines import timelines_by_name
from tracekit.report.words.common import scope, subject
from tracekit.report.words.notes import grave_sentences


def alone_page(alone: Alone, run: Run | None = None, command: str | None = None) -> str:
    """One offline HTML file; `command` is the one that makes it anew."""
    side = alone.side
    sides = lettered(side)
    return render_page(
        "alone.html.j2",
        charts=side_charts(sides),
        timelines=timelines_by_name(sides),
        tables={
            **shared_tables(sides),
            "figures": figures_table(side),
            "numerics": None,
            "timing": those((timing_table(sides),)),
            "components": component_table(run) if run else None,
        },
        title=headline(side),
        one=True,
        run=run,
        command=command,
        subject=subject(side),
        scope=scope(side),
        sentences=sentences(alone),
        grave=grave_sentences(alone.notes),
        warnings=warnings(alone, run.notes if run else ()),
        findings=alone.findings,
        key_figures=key_figures(side),
        kernels=every_kernel(side),
        method=how_one_was_measured(alone, run),
        on_cpu=side.analysis.gpu is None,
    )
