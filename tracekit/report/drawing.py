"""How charts look: plotly's figures in the page's colours, with labels that tell their bars apart."""

from __future__ import annotations

import html
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from tracekit.names import printable
from tracekit.report.document import Chart

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Width of the labels beside a chart, in characters, so that bars keep room on a phone.
LABEL_WIDTH = 26
#: Heights of a figure's title, which the page has above the drawing instead, and of a legend, in pixels.
TITLE, LEGEND = 40, 30

#: A colour of the style sheet's; the page's script looks it up as the reader's scheme has it.
COLOUR = re.compile(r"var\(--([\w-]+)\)")

AXIS = {"gridcolor": "var(--rule)", "zerolinecolor": "var(--soft)", "fixedrange": True, "automargin": True}
LOOK = {
    "paper_bgcolor": "var(--paper)",
    "plot_bgcolor": "var(--paper)",
    "font": {"color": "var(--ink)", "size": 12},
    "hoverlabel": {"font": {"color": "var(--ink)"}, "bgcolor": "var(--raised)", "bordercolor": "var(--rule)"},
    "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "traceorder": "normal"},
    "bargap": 0.35,
    "bargroupgap": 0.08,
}
#: The first bar on top, each label with room from the axis.
ROWS = {
    "autorange": "reversed",
    "showgrid": False,
    "zeroline": False,
    "ticks": "outside",
    "ticklen": 6,
    "tickcolor": "rgba(0,0,0,0)",
}


def drawn(
    id_: str,
    title: str,
    data: Iterable[dict[str, Any]],
    layout: dict[str, Any],
    height: int,
    description: str = "the table below holds the same values",
) -> Chart:
    """The block of a chart of horizontal bars, so many pixels high."""
    room = TITLE + (LEGEND if layout.get("showlegend") else 8)
    look = LOOK | {
        "margin": {"l": 8, "r": 12, "t": room, "b": 40},
        "title": {"text": escaped(title), "x": 0.01, "xanchor": "left", "font": {"size": 14}},
        "height": height + TITLE,
    }
    axes = {"xaxis": AXIS | layout.get("xaxis", {}), "yaxis": AXIS | ROWS | layout.get("yaxis", {})}
    return Chart(id_, title, f"{title}; {description}.", _figure(data, look | layout | axes), height)


def figures_of(charts: Iterable[Chart | None]) -> dict[str, Figure]:
    """The figures of the charts that there are by their ids, in the colours of the light scheme."""
    found = {}
    for chart in filter(None, charts):
        told = _coloured(chart.figure.to_dict())
        found[chart.id] = _figure(told["data"], told["layout"])
    return found


def _figure(data: Iterable[dict[str, Any]], layout: dict[str, Any]) -> Figure:
    # Importing it takes a fifth of a second, which only drawing is worth.
    from plotly.graph_objects import Figure

    # Plotly's own template would be in every chart of the page.
    figure = Figure(list(data), {"template": {}, **layout})
    figure.layout.template = None
    return figure


def _coloured(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _coloured(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_coloured(each) for each in value]
    while isinstance(value, str) and (named := COLOUR.fullmatch(value)):
        value = light_scheme()[named[1]]
    return value


@cache
def light_scheme() -> dict[str, str]:
    """The style sheet's colours by their names; some name others."""
    style = (resources.files("tracekit.report") / "templates/page.css").read_text(encoding="utf-8")
    always = re.findall(r"^:root \{(.*?)^\}", style, re.DOTALL | re.MULTILINE)
    return {name: value for body in always for name, value in re.findall(r"--([\w-]+):\s*([^;]+);", body)}


def axis_of(labels: Sequence[str]) -> dict[str, Any]:
    """Labels stand at numbers, because plotly takes two bars of one label for the same."""
    return {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": told_apart(labels)}


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
