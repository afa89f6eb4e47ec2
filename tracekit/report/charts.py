"""What the page draws, as plotly figures. Every value drawn is in a table beside it too.

Colours are names (`gain`, `side-a`, ...) that the page replaces by those of its light or dark scheme.
"""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from typing import Any

from tracekit.model.comparison import Comparison
from tracekit.numbers import duration, duration_change
from tracekit.report.names import printable
from tracekit.report.sections.compilation import PHASES
from tracekit.report.sections.idle import causes_present
from tracekit.report.sections.kernels import families_of, families_present
from tracekit.report.sections.waterfall import part_label
from tracekit.report.words import cause_words, shared_scope

#: Width of the labels beside a chart, in characters, so that bars keep room on a phone.
LABEL_WIDTH = 26

#: Heights in pixels.
PER_BAR = 34
PER_PAIR = 46
MARGINS = 56


@dataclass(frozen=True, slots=True)
class Chart:
    """`id` is the element it is drawn into; `description` is what a screen reader says."""

    id: str
    title: str
    description: str
    data: tuple[dict[str, Any], ...]
    layout: dict[str, Any]
    height: int


def comparison_charts(comparison: Comparison) -> dict[str, Chart]:
    """The charts that this comparison has figures for, by id."""
    charts = (_waterfall(comparison), *_families(comparison), _causes(comparison), _phases(comparison))
    return {chart.id: chart for chart in charts if chart is not None}


def _waterfall(comparison: Comparison) -> Chart | None:
    waterfall = comparison.waterfall
    if waterfall is None:
        return None
    parts = [(part_label(part), part.delta_us) for part in waterfall.parts]
    bars = [
        *((label, us) for label, us in parts if duration_change(us) != "0"),
        ("residual, not explained", waterfall.residual_us),
    ]
    labels = [comparison.a.label, *(label for label, _ in bars), comparison.b.label]
    values = [waterfall.a_us, *(us for _, us in bars), waterfall.b_us]
    texts = [duration(waterfall.a_us), *(duration_change(us) for _, us in bars), duration(waterfall.b_us)]
    data = {
        "type": "waterfall",
        "orientation": "h",
        "y": list(range(len(labels))),
        "x": [us / 1e3 for us in values],
        "measure": ["absolute", *("relative" for _ in bars), "absolute"],
        "text": texts,
        "textposition": "outside",
        "cliponaxis": False,
        "hoverinfo": "text",
        "increasing": {"marker": {"color": "loss"}},
        "decreasing": {"marker": {"color": "gain"}},
        "totals": {"marker": {"color": "total"}},
        "connector": {"line": {"color": "rule", "width": 1}},
    }
    return Chart(
        id="waterfall",
        title=f"From A to B in milliseconds, {shared_scope(comparison)}",
        description="Waterfall from the time of A to the time of B; the table below holds the same values.",
        data=(data,),
        layout={
            "xaxis": {"title": {"text": "ms"}, "range": [0, _longest_reach(waterfall.a_us, values) / 1e3 * 1.18]},
            "yaxis": _axis(labels),
        },
        height=PER_BAR * len(labels) + MARGINS,
    )


def _longest_reach(start_us: float, values: list[float]) -> float:
    """The largest time that the running sum comes to."""
    level = reach = start_us
    for us in values[1:-1]:
        level += us
        reach = max(reach, level)
    return max(reach, values[-1])


def _families(comparison: Comparison) -> tuple[Chart, ...]:
    a, b = families_of(comparison.a), families_of(comparison.b)
    present = families_present(comparison)
    if not present:
        return ()
    pairs = {family: (a.get(family, (0.0, 0.0)), b.get(family, (0.0, 0.0))) for family in present}
    times = {family: (one[1] / 1e3, other[1] / 1e3) for family, (one, other) in pairs.items()}
    counts = {family: (one[0], other[0]) for family, (one, other) in pairs.items()}
    return (
        _paired(
            "family-times",
            f"GPU time by kernel family in milliseconds, {shared_scope(comparison)}",
            times,
            comparison,
            "ms",
        ),
        _paired(
            "family-counts", f"Number of kernels by family, {shared_scope(comparison)}", counts, comparison, "kernels"
        ),
    )


def _causes(comparison: Comparison) -> Chart | None:
    if comparison.a.analysis.idle is None or comparison.b.analysis.idle is None:
        return None
    a, b = comparison.a.calibrated_idle_by_cause(), comparison.b.calibrated_idle_by_cause()
    how = "unprofiled calls"
    if a is None or b is None:
        a, b, how = comparison.a.idle_by_cause(), comparison.b.idle_by_cause(), "as recorded"
    values = {
        cause_words(cause): (a.get(cause, 0.0) / 1e3, b.get(cause, 0.0) / 1e3) for cause in causes_present(comparison)
    }
    return (
        _paired(
            "idle-causes",
            f"Idle time by cause in milliseconds, {how}, {shared_scope(comparison)}",
            values,
            comparison,
            "ms",
        )
        if values
        else None
    )


def _phases(comparison: Comparison) -> Chart | None:
    """Time of compiling, a bar for each phase; of a side that was not compiled the bars are empty."""
    one, other = (
        {phase.phase: phase.seconds for phase in side.diagnostics.phases} if side.diagnostics else {}
        for side in (comparison.a, comparison.b)
    )
    values = {
        words: (one.get(phase, 0.0), other.get(phase, 0.0))
        for phase, words in PHASES.items()
        if phase in one or phase in other
    }
    title = "Time of compiling by phase in seconds"
    return _paired("compile-phases", title, values, comparison, "s") if values else None


def _paired(id_: str, title: str, values: dict[str, tuple[float, float]], comparison: Comparison, unit: str) -> Chart:
    """A bar of A and a bar of B for each label, the first label on top."""
    labels = list(values)
    traces = tuple(
        {
            "type": "bar",
            "orientation": "h",
            "name": _label(f"{letter}: {side.label}"),
            "y": list(range(len(labels))),
            "customdata": [html.escape(printable(label), quote=False) for label in labels],
            "x": [pair[index] for pair in values.values()],
            "marker": {"color": f"side-{letter.lower()}"},
            "hovertemplate": f"%{{customdata}}: %{{x:,.3~f}} {unit}<extra>{letter}</extra>",
        }
        for index, (letter, side) in enumerate((("A", comparison.a), ("B", comparison.b)))
    )
    return Chart(
        id=id_,
        title=title,
        description=f"{title}, A beside B; the table below holds the same values.",
        data=traces,
        layout={
            "barmode": "group",
            "xaxis": {"title": {"text": unit}, "rangemode": "tozero"},
            "yaxis": _axis(labels),
        },
        height=PER_PAIR * len(labels) + MARGINS + 30,
    )


def _axis(labels: list[str]) -> dict[str, Any]:
    """Labels stand at numbers, because plotly takes two bars of one label for the same."""
    return {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": [_label(each) for each in labels]}


def _label(text: str) -> str:
    """Wrapped for the axis. Plotly reads labels as simple HTML, so what the text holds of it is escaped."""
    lines = textwrap.wrap(printable(text), LABEL_WIDTH, max_lines=2, placeholder="…") or [""]
    return "<br>".join(html.escape(line, quote=False) for line in lines)
