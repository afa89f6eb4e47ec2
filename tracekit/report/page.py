"""The comparison as one HTML page that needs no network: charts, tables, and how each figure came about."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from importlib import resources

from markupsafe import Markup

from tracekit.model.comparison import Comparison, Side
from tracekit.model.run import Run
from tracekit.numbers import change_with_share, count, duration, percent, times
from tracekit.report.charts import comparison_charts
from tracekit.report.method import TIMELINES, how_measured
from tracekit.report.sections.compilation import compilation_tables
from tracekit.report.sections.every_group import every_group
from tracekit.report.sections.findings import finding_notes
from tracekit.report.sections.gpu_state import gpu_state_table
from tracekit.report.sections.groups import evidence_table, group_note, origin_table
from tracekit.report.sections.idle import cause_table, gap_table, sync_table
from tracekit.report.sections.kernels import family_table, top_kernels_table
from tracekit.report.sections.limits import limit_sentences
from tracekit.report.sections.memory import memory_table
from tracekit.report.sections.numerics import accuracy_sentence, numerics_table, picture_sources
from tracekit.report.sections.operators import operator_table
from tracekit.report.sections.overview import overview_table, shared_basis
from tracekit.report.sections.queue import queue_table
from tracekit.report.sections.recording import health_table, recording_table
from tracekit.report.sections.setting import component_table, environment_table, settings_table
from tracekit.report.sections.startup import startup_table
from tracekit.report.sections.timing import certainty_table, process_table, timing_table
from tracekit.report.sections.traffic import product_table
from tracekit.report.sections.waterfall import waterfall_table
from tracekit.report.table import Table
from tracekit.report.templating import asset, environment, moment, policy, script_hash
from tracekit.report.timelines import timelines
from tracekit.report.words import (
    result_word,
    shared_scope,
    subjects,
    verdict_evidence,
    verdict_sentence,
    warnings_beside,
)

PLOTLY = "plotly-finance.min.js.gz"

#: What the page runs, in this order, as one script.
SCRIPTS = ("page.js", "tables.js", "timelines.js")


def comparison_page(comparison: Comparison, run: Run | None = None, command: str | None = None) -> str:
    """One offline HTML file; `command` is the one that reproduces it.

    The page forbids itself all network access and every script but its own.
    """
    charts, drawn = comparison_charts(comparison), timelines(comparison)
    script, data = "".join(map(asset, SCRIPTS)), _script_safe([asdict(chart) for chart in charts.values()])
    template = environment().get_template("page.html.j2")
    page = template.render(
        comparison=comparison,
        finding_notes=finding_notes,
        run=run,
        command=command,
        charts=charts,
        policy=policy(script_hash(script.encode()), *([_plotly_hash()] if charts else [])),
        style=Markup(asset("page.css")),
        script=Markup(script),
        chart_data=Markup(data),
        timelines=drawn,
        timelines_data=Markup(_script_safe(drawn.data)) if drawn else "",
        plotly=Markup(_plotly_packed()) if charts else None,
        verdict=verdict_sentence(comparison),
        evidence=verdict_evidence(comparison),
        limits=limit_sentences(comparison),
        warnings=warnings_beside(comparison),
        accuracy=accuracy_sentence(comparison),
        pictures=picture_sources(comparison),
        result=result_word(comparison),
        subject=subjects(comparison),
        scope=shared_scope(comparison),
        key_figures=_key_figures(comparison),
        tables=_tables(comparison, run),
        groups=every_group(comparison),
        group_note=group_note(comparison),
        method=(*how_measured(comparison, run), *([("Moment by moment", TIMELINES)] if drawn else ())),
        on_cpu=comparison.a.analysis.gpu is None and comparison.b.analysis.gpu is None,
    )
    return page.lstrip()


def _key_figures(comparison: Comparison) -> tuple[tuple[str, str, str], ...]:
    """Three figures to remember: what they are, their change, and from what to what."""
    a, b, verdict, basis = comparison.a, comparison.b, comparison.verdict, shared_basis(comparison)
    a_idle, b_idle = a.idle_us(basis), b.idle_us(basis)
    figures = []
    if verdict.speedup is not None:
        spread = f"95 % interval {verdict.ci95[0]:.3f} to {verdict.ci95[1]:.3f}" if verdict.ci95 else "no interval"
        figures.append(("Speed-up", times(verdict.speedup), spread))
    for label, one, other in (("Wall time", a.wall_us, b.wall_us), ("GPU busy", a.busy_us, b.busy_us)):
        if one is not None and other is not None:
            figures.append((label, change_with_share(other - one, one), f"{duration(one)} → {duration(other)}"))
    if a_idle is not None and b_idle is not None:
        ends = f"{duration(a_idle)} → {duration(b_idle)}"
        figures.append(
            (
                "GPU idle" if basis == "unprofiled" else "GPU idle, as recorded",
                change_with_share(b_idle - a_idle, a_idle),
                ends,
            )
        )
    if a.analysis.kernels and b.analysis.kernels:
        one, other = a.analysis.kernels.count / a.steps, b.analysis.kernels.count / b.steps
        change = percent(other / one - 1, 0).replace("-", "\N{MINUS SIGN}") if one else count(other)
        figures.append(("Kernels", change if change.startswith("\N{MINUS SIGN}") else f"+{change}", _arrow(one, other)))
    return tuple(figures)


def _arrow(a: float, b: float) -> str:
    return f"{count(a)} → {count(b)}"


def _tables(comparison: Comparison, run: Run | None) -> dict[str, Table | tuple[Table, ...] | None]:
    sides: tuple[tuple[Side, str], ...] = ((comparison.a, "A"), (comparison.b, "B"))
    return {
        "overview": overview_table(comparison),
        "memory": memory_table(comparison),
        "numerics": numerics_table(comparison),
        "gpu_state": gpu_state_table(comparison),
        "waterfall": waterfall_table(comparison),
        "families": family_table(comparison),
        "evidence": evidence_table(comparison),
        "origins": origin_table(comparison),
        "products": product_table(comparison),
        "top": _those(top_kernels_table(*side) for side in sides),
        "causes": cause_table(comparison),
        "queue": queue_table(comparison),
        "compilation": compilation_tables(comparison),
        "gaps": _those(gap_table(*side) for side in sides),
        "syncs": _those(sync_table(*side) for side in sides),
        "operators": _those(operator_table(*side) for side in sides),
        "startup": startup_table(comparison),
        "timing": _those(make(comparison) for make in (certainty_table, timing_table, process_table)),
        "recording": recording_table(comparison),
        "health": health_table(comparison),
        "components": component_table(run) if run else None,
        "settings": settings_table(comparison),
        "environment": environment_table(comparison),
    }


def _those(tables: Iterable[Table | None]) -> tuple[Table, ...]:
    return tuple(table for table in tables if table is not None)


def is_of_run(page: str, run: Run) -> bool:
    """Whether a page that was written before tells of this run, by when it was recorded."""
    return f"Recorded {moment(run.started)} with" in page


@cache
def _plotly_packed() -> str:
    """Plotly's script, packed, in base64: a third of its size."""
    return base64.b64encode((resources.files("tracekit.report") / "assets" / PLOTLY).read_bytes()).decode()


@cache
def _plotly_hash() -> str:
    return script_hash(gzip.decompress((resources.files("tracekit.report") / "assets" / PLOTLY).read_bytes()))


def _script_safe(data: object) -> str:
    """JSON that can stand in a script element: no text in it can end the element."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
