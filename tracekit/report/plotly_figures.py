"""Charts as plotly figures, in the page's colours, with labels that tell their bars apart."""

from __future__ import annotations

import html
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from tracekit.names import printable
from tracekit.report.document import Chart, DrawnBar

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Width of the labels beside a chart, in characters, so that bars keep room on a phone.
LABEL_WIDTH = 26
#: Heights in pixels: of title, axis and legend together, of a line of bars, and between rows.
AROUND, LINE, BETWEEN = 140, 24, 12
#: The part of a row that its bars cover.
COVERED = 0.8
#: What a figure may be, at the end of its bar.
REACH: dict[str, Any] = {"type": "data", "symmetric": False, "thickness": 1, "width": 3}


def figures_of(charts: Iterable[Chart | None]) -> dict[str, Figure]:
    """The charts that there are as figures by their ids, in the colours of the light scheme."""
    return {chart.id: figure_of(chart) for chart in charts if chart is not None}


def figure_of(chart: Chart) -> Figure:
    # Importing it takes a fifth of a second, which only drawing is worth.
    from plotly.graph_objects import Figure

    lines = max(1 if chart.inside else len(row.bars) for row in chart.rows)
    look = {
        "title": {"text": escaped(chart.title), "x": 0.01, "xanchor": "left", "font": {"size": 14}},
        "height": AROUND + len(chart.rows) * (BETWEEN + LINE * lines),
        "paper_bgcolor": colour("paper"),
        "plot_bgcolor": colour("paper"),
        "font": {"color": colour("ink"), "size": 12},
        "barmode": "overlay",
        "showlegend": bool(chart.legend),
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"},
        "margin": {"l": 8, "r": 70, "b": 40},
        "xaxis": {"title": {"text": chart.unit}, "gridcolor": colour("rule"), "zerolinecolor": colour("soft")},
        # Labels stand at numbers, because plotly takes two bars of one label for the same.
        "yaxis": {
            "autorange": "reversed",
            "automargin": True,
            "showticklabels": any(row.label for row in chart.rows),
            "showgrid": False,
            "zeroline": False,
            "tickmode": "array",
            "tickvals": list(range(len(chart.rows))),
            "ticktext": told_apart([row.label for row in chart.rows]),
        },
        # A text that does not fit into its bar is only told on pointing at it.
        "uniformtext": {"mode": "hide", "minsize": 10},
    }
    figure = Figure([*_traces(chart)], look)
    # The user's own template, or plotly's, is not of these colours.
    figure.layout.template = None
    return figure


def _traces(chart: Chart) -> Iterator[dict[str, Any]]:
    alike: dict[tuple[str, str, bool, str], list[tuple[float, float, DrawnBar]]] = {}
    for at, row in enumerate(chart.rows):
        # The middle and the width of each bar on the axis of rows.
        lines = 1 if chart.inside else max(1, len(row.bars))
        for number, bar in enumerate(row.bars):
            place = at + COVERED * (((0 if chart.inside else number) + 0.5) / lines - 0.5)
            alike.setdefault((bar.kind, bar.colour, bar.hatched, bar.ink), []).append((place, COVERED / lines, bar))
    for (kind, hue, hatched, ink), some in alike.items():
        places, widths, bars = zip(*some, strict=True)
        reaches = [(bar.reach or (bar.end, bar.end), bar.end) for bar in bars]
        beyond, below = [high - end for (_, high), end in reaches], [end - low for (low, _), end in reaches]
        error = {**REACH, "color": colour("ink"), "array": beyond, "arrayminus": below}
        yield {
            "type": "bar",
            "orientation": "h",
            "name": escaped(kind),
            "y": places,
            "width": widths,
            # From left to right, so that a text outside stands at the right.
            "base": [min(bar.start, bar.end) for bar in bars],
            "x": [abs(bar.end - bar.start) for bar in bars],
            "text": [escaped(bar.text) for bar in bars],
            "textposition": "inside" if chart.inside else "outside",
            "cliponaxis": False,
            "insidetextanchor": "middle",
            "textangle": 0,
            "insidetextfont": {"color": colour(ink)},
            "customdata": [escaped(bar.words) for bar in bars],
            "hovertemplate": "%{customdata}<extra></extra>",
            "marker": {
                "color": colour(hue),
                "opacity": [bar.strength for bar in bars],
                "line": {"color": colour("paper"), "width": 1},
                **({"pattern": {"shape": "/"}} if hatched else {}),
            },
            **({"error_x": error} if any(bar.reach for bar in bars) else {}),
        }


def colour(name: str) -> str:
    """One of the style sheet's, as the light scheme has it."""
    value = f"var(--{name})"
    while named := re.fullmatch(r"var\(--([\w-]+)\)", value):
        value = light_scheme()[named[1]]
    return value


@cache
def light_scheme() -> dict[str, str]:
    """The style sheet's colours by their names; some name others."""
    style = (resources.files("tracekit.report") / "templates/page.css").read_text(encoding="utf-8")
    always = re.findall(r"^:root \{(.*?)^\}", style, re.DOTALL | re.MULTILINE)
    return {name: value for body in always for name, value in re.findall(r"--([\w-]+):\s*([^;]+);", body)}


def told_apart(labels: Sequence[str]) -> list[str]:
    """The labels on two lines at most, as simple HTML, which plotly reads. Of those that would look alike the second
    line is their end; if that is alike too they are numbered."""
    wrapped = [
        tuple(textwrap.wrap(printable(label), LABEL_WIDTH, max_lines=2, placeholder="…")) or ("",) for label in labels
    ]
    alike, seen = Counter(wrapped), Counter[tuple[str, ...]]()
    found = []
    for label, lines in zip(map(printable, labels), wrapped, strict=True):
        if alike[lines] > 1 and len(lines) > 1:
            lines = (lines[0], f"…{label[1 - LABEL_WIDTH :]}")
        seen[lines] += 1
        number = f" ({seen[lines]})" if seen[lines] > 1 else ""
        found.append("<br>".join(map(escaped, lines)) + number)
    return found


def escaped(text: str) -> str:
    """As plotly shows it: it reads text as simple HTML."""
    return html.escape(printable(text), quote=False)
