"""What the page draws, as plotly figures. Every value drawn is in a table beside it too.

Colours are names (`gain`, `side-a`, ...) that the page replaces by those of its light or dark scheme.
"""

import html
import itertools
import textwrap
from string import ascii_lowercase
from typing import Any

from tracekit.model.comparison import Comparison
from tracekit.names import printable
from tracekit.numbers import duration, duration_change
from tracekit.report.document import Chart
from tracekit.report.sections.compilation import PHASES
from tracekit.report.sections.headline import LETTERS, Names, part_label
from tracekit.report.sections.idle import causes_present
from tracekit.report.sections.kernels import times_by_family
from tracekit.report.sides import Sides, side_name
from tracekit.report.words.common import cause_words, scope_of, shared_scope

#: Width of the labels beside a chart, in characters, so that bars keep room on a phone.
LABEL_WIDTH = 26

#: Sides that the style sheet has a hue for (`side-a` to `side-i`). The others have the same ones again, hatched.
HUES = "abcdefghi"

BESIDE_BAR = {"xanchor": "left", "xshift": 3, "showarrow": False}
#: Heights in pixels.
PER_BAR = 34
BAR_APART = 16
PER_SIDE = 15
MARGINS = 56


def waterfall_chart(comparison: Comparison, id_: str = "waterfall", names: Names = LETTERS) -> Chart | None:
    """From the time of A to the time of B; None where there is no waterfall."""
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
    # The running sum before each change, and the figure of each bar at its right end: at its left a narrow page has
    # the bar's label.
    levels = [0.0, *itertools.accumulate(values[:-2]), 0.0]
    reach = max(*itertools.accumulate(values[:-1]), values[-1])
    texts = [duration(waterfall.a_us), *(duration_change(us) for _, us in bars), duration(waterfall.b_us)]
    data = {
        "type": "waterfall",
        "orientation": "h",
        "y": list(range(len(labels))),
        "x": [us / 1e3 for us in values],
        "measure": ["absolute", *("relative" for _ in bars), "absolute"],
        "text": texts,
        "textposition": "none",
        "hoverinfo": "text",
        "increasing": {"marker": {"color": "loss"}},
        "decreasing": {"marker": {"color": "gain"}},
        "totals": {"marker": {"color": "total"}},
        "connector": {"line": {"color": "rule", "width": 1}},
    }
    return Chart(
        id=id_,
        title=f"From {names[0]} to {names[1]} in milliseconds, {shared_scope(comparison, names)}",
        description=f"Waterfall from {names[0]} to {names[1]}; the table below holds the same values.",
        data=(data,),
        layout={
            "xaxis": {"title": {"text": "ms"}, "range": [0, reach / 1e3 * 1.18]},
            "yaxis": _axis(labels),
            "annotations": [
                {"text": text, "x": max(start, start + us) / 1e3, "y": at} | BESIDE_BAR
                for at, (text, start, us) in enumerate(zip(texts, levels, values, strict=True))
            ],
        },
        height=PER_BAR * len(labels) + MARGINS,
    )


def family_charts(sides: Sides) -> tuple[Chart, ...]:
    figures = times_by_family(sides)
    if not figures:
        return ()
    times = {family: [us / 1e3 for _, us in each] for family, each in figures.items()}
    counts = {family: [number for number, _ in each] for family, each in figures.items()}
    scope = scope_of(sides)
    return (
        _grouped("family-times", f"GPU time by kernel family in milliseconds, {scope}", times, sides, "ms"),
        _grouped("family-counts", f"Number of kernels by family, {scope}", counts, sides, "kernels"),
    )


def cause_chart(sides: Sides) -> Chart | None:
    if any(side.analysis.idle is None for _, side in sides):
        return None
    calibrated = [side.calibrated_idle_by_cause() for _, side in sides]
    known = [each for each in calibrated if each is not None]
    how = "unprofiled calls"
    if len(known) < len(sides):
        known, how = [side.idle_by_cause() for _, side in sides], "as recorded"
    values = {cause_words(cause): [each.get(cause, 0.0) / 1e3 for each in known] for cause in causes_present(sides)}
    title = f"Idle time by cause in milliseconds, {how}, {scope_of(sides)}"
    return _grouped("idle-causes", title, values, sides, "ms") if values else None


def phase_chart(sides: Sides) -> Chart | None:
    """Time of compiling, a bar for each phase; of a side that was not compiled the bars are empty."""
    found: list[dict[str, float]] = [
        {phase.phase: phase.seconds for phase in side.diagnostics.phases} if side.diagnostics else {}
        for _, side in sides
    ]
    values = {
        words: [each.get(phase, 0.0) for each in found]
        for phase, words in PHASES.items()
        if any(phase in each for each in found)
    }
    title = "Time of compiling by phase in seconds"
    return _grouped("compile-phases", title, values, sides, "s") if values else None


def _grouped(id_: str, title: str, values: dict[str, list[float]], sides: Sides, unit: str) -> Chart:
    """A bar of each side for each label, the first label on top."""
    # No two sides look alike.
    colours = [{"color": f"side-{hue}"} for hue in HUES]
    looks: list[dict[str, Any]] = [*colours, *({**each, "pattern": {"shape": "/"}} for each in colours * 2)]
    labels = list(values)
    traces = tuple(
        {
            "type": "bar",
            "orientation": "h",
            "name": _label(side_name(letter, side)),
            "y": list(range(len(labels))),
            "customdata": [html.escape(printable(label), quote=False) for label in labels],
            "x": [figures[index] for figures in values.values()],
            "marker": looks[ascii_lowercase.index((letter or "b").lower())],
            "hovertemplate": f"%{{customdata}}: %{{x:,.3~f}} {unit}<extra>{letter}</extra>",
        }
        for index, (letter, side) in enumerate(sides)
    )
    beside = f", {' beside '.join(letter for letter, _ in sides)}" if len(sides) > 1 else ""
    return Chart(
        id=id_,
        title=title,
        description=f"{title}{beside}; the table below holds the same values.",
        data=traces,
        layout={"barmode": "group", "xaxis": {"title": {"text": unit}, "rangemode": "tozero"}, "yaxis": _axis(labels)},
        height=(BAR_APART + PER_SIDE * len(sides)) * len(labels) + MARGINS + 30,
    )


def _axis(labels: list[str]) -> dict[str, Any]:
    """Labels stand at numbers, because plotly takes two bars of one label for the same."""
    return {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": [_label(each) for each in labels]}


def _label(text: str) -> str:
    """Wrapped for the axis. Plotly reads labels as simple HTML, so what the text holds of it is escaped."""
    lines = textwrap.wrap(printable(text), LABEL_WIDTH, max_lines=2, placeholder="…") or [""]
    return "<br>".join(html.escape(line, quote=False) for line in lines)
