"""The comparison as one HTML page that needs no network: charts, tables, and how each figure came about."""

from __future__ import annotations

from tracekit.model.comparison import Comparison
from tracekit.model.run import Run
from tracekit.report.beside import shared_tables
from tracekit.report.charts import comparison_charts
from tracekit.report.lettered import both
from tracekit.report.method import TIMELINES, how_measured
from tracekit.report.rendering import Tables, render_page, those
from tracekit.report.sections.every_group import every_group
from tracekit.report.sections.gate import gate_outcome, gate_sentences
from tracekit.report.sections.groups import evidence_table, origin_table
from tracekit.report.sections.kernels import top_kernels_table
from tracekit.report.sections.key_figures import key_figures
from tracekit.report.sections.limits import limit_sentences
from tracekit.report.sections.numerics import accuracy_sentence, numerics_table, picture_sources
from tracekit.report.sections.overview import overview_table
from tracekit.report.sections.reason import reason_sentence
from tracekit.report.sections.setting import component_table
from tracekit.report.sections.startup import startup_table
from tracekit.report.sections.timing import certainty_table, process_table, timing_table
from tracekit.report.sections.traffic import product_table
from tracekit.report.sections.waterfall import waterfall_table
from tracekit.report.timelines import timelines
from tracekit.report.words.common import (
    result_word,
    shared_scope,
    subjects,
    verdict_evidence,
    verdict_sentence,
)
from tracekit.report.words.notes import grave_sentences, other_sentences


def comparison_page(comparison: Comparison, run: Run | None = None, command: str | None = None) -> str:
    """One offline HTML file; `command` is the one that reproduces it."""
    drawn = timelines(comparison)
    return render_page(
        "page.html.j2",
        charts=comparison_charts(comparison),
        timelines=drawn,
        tables=_tables(comparison, run),
        title=verdict_sentence(comparison),
        one=False,
        comparison=comparison,
        run=run,
        command=command,
        evidence=verdict_evidence(comparison),
        gate=gate_outcome(comparison.gate) if comparison.gate else None,
        gate_sentences=gate_sentences(comparison),
        reason=reason_sentence(comparison),
        limits=limit_sentences(comparison),
        grave=grave_sentences(comparison.notes),
        warnings=(*other_sentences(comparison.notes), *(run.notes if run else ())),
        accuracy=accuracy_sentence(comparison),
        pictures=picture_sources(comparison),
        result=result_word(comparison),
        subject=subjects(comparison),
        scope=shared_scope(comparison),
        key_figures=key_figures(comparison),
        groups=every_group(comparison),
        method=(*how_measured(comparison, run), *([("Moment by moment", TIMELINES)] if drawn else ())),
        on_cpu=comparison.a.analysis.gpu is None and comparison.b.analysis.gpu is None,
    )


def _tables(comparison: Comparison, run: Run | None) -> Tables:
    sides = both(comparison)
    return {
        **shared_tables(sides),
        "overview": overview_table(comparison),
        "numerics": numerics_table(comparison),
        "waterfall": waterfall_table(comparison),
        "evidence": evidence_table(comparison),
        "origins": origin_table(comparison),
        "products": product_table(comparison),
        "top": those(top_kernels_table(side, letter) for letter, side in sides),
        "startup": startup_table(comparison),
        "timing": those((certainty_table(comparison), timing_table(sides), process_table(comparison))),
        "components": component_table(run) if run else None,
    }
