"""What every page with charts and timelines is rendered by: its scripts, its data, and what it forbids itself."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cache
from importlib import resources

from markupsafe import Markup

from tracekit.report.charts import Chart
from tracekit.report.sections.findings import finding_notes
from tracekit.report.table import Table
from tracekit.report.templating import asset, environment, policy, script_hash
from tracekit.report.timelines import Timelines

PLOTLY = "plotly-finance.min.js.gz"

#: What the page runs, in this order, as one script.
SCRIPTS = ("later.js", "tables.js", "sections.js", "page.js", "timelines.js")

#: The tables of a page by the name under which its template shows them.
Tables = Mapping[str, Table | tuple[Table, ...] | None]


def render_page(
    template: str, *, charts: Mapping[str, Chart], timelines: Timelines | None, tables: Tables, **parts: object
) -> str:
    """One offline HTML file, which forbids itself all network access and every script but its own."""
    script, data = "".join(map(asset, SCRIPTS)), _script_safe([asdict(chart) for chart in charts.values()])
    page = (
        environment()
        .get_template(template)
        .render(
            charts=charts,
            timelines=timelines,
            tables=tables,
            finding_notes=finding_notes,
            policy=policy(script_hash(script.encode()), *([_plotly_hash()] if charts else [])),
            style=Markup(asset("page.css")),
            script=Markup(script),
            chart_data=Markup(data),
            timelines_data=Markup(_script_safe(timelines.data)) if timelines else "",
            plotly=Markup(_plotly_packed()) if charts else None,
            **parts,
        )
    )
    return page.lstrip()


def those(tables: Iterable[Table | None]) -> tuple[Table, ...]:
    """The tables that there are."""
    return tuple(table for table in tables if table is not None)


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
