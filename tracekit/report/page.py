"""A report as one HTML page that needs no network: it holds its scripts and data, and forbids itself all others."""

import base64
import gzip
import hashlib
import json
import re
from functools import cache
from importlib import resources

import jinja2
from markupsafe import Markup

from tracekit.names import printable
from tracekit.numbers import duration
from tracekit.report.accounts import advised, shown_account
from tracekit.report.document import Name, Report, Table, Timelines
from tracekit.report.sections.call import CALL_PARTS

#: What every page runs, and what those run besides that draw something, as one script.
SCRIPTS = ("later.js", "copy.js", "drawer.js", "tables.js", "sections.js")
DRAWING = ("timelines.js",)
#: A narrow screen shows tables with more columns, or longer figures, as stacked rows.
MOST_COLUMNS = 3
LONGEST_FIGURE = 20
#: An option of a command, with its value.
OPTION = re.compile(r"(?<!\S)--?[a-zA-Z][\w-]*(?:[ =](?!-)(?:'[^']*'|\S+))?")
#: A space between a figure and its unit, as in `12.3 µs`; not one between two figures, as in `1.136 to 1.155`.
UNIT_SPACE = re.compile(r"(?<=\d) (?!to\b|[(\N{MIDDLE DOT}])")


def page_of(report: Report) -> str:
    """The HTML file's text."""
    draws = any(isinstance(block, Timelines) for block in report.drawn())
    script = "".join(_asset(f"templates/{name}").decode() for name in (*SCRIPTS, *(DRAWING if draws else ())))
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Only this script may run, and nothing may be fetched.
    policy = (
        f"default-src 'none'; script-src 'sha256-{known}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            draws=draws,
            policy=policy,
            style=Markup(_asset("templates/page.css").decode()),
            script=Markup(script),
        )
    )
    return page.lstrip()


@cache
def _asset(name: str) -> bytes:
    return (resources.files("tracekit.report") / name).read_bytes()


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("tracekit.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        # Text from traces without control characters; what is markup already is the page's own.
        finalize=lambda value: printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A figure is not parted from its unit; what follows may go to the next line.
    made.filters["unbroken"] = lambda figure: UNIT_SPACE.sub("\N{NO-BREAK SPACE}", printable(figure))
    made.filters["whole_options"] = _whole_options
    # JSON that can stand in a script element: no text in it can end the element.
    ends = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
    made.filters["script_json"] = lambda data: Markup(
        json.dumps(data, allow_nan=False, separators=(",", ":")).translate(ends)
    )
    made.filters["duration"] = duration
    made.filters["shown"] = shown_account
    made.filters["advised"] = advised
    made.globals["call_parts"] = CALL_PARTS
    made.filters["packed"] = lambda markup: Markup(base64.b64encode(gzip.compress(markup.encode(), mtime=0)).decode())
    made.filters["kind"] = lambda block: type(block).__name__
    made.tests["wide"] = _is_wide
    made.tests["name"] = lambda cell: isinstance(cell, Name)
    return made


def _whole_options(line: str) -> Markup:
    """The line, in which each option stays on one line with its value where there is room."""
    line, end, told = printable(line), 0, Markup()
    for option in OPTION.finditer(line):
        told += Markup('{}<span class="whole">{}</span>').format(line[end : option.start()], option[0])
        end = option.end()
    return told + line[end:]


def _is_wide(table: Table) -> bool:
    if len(table.columns) > MOST_COLUMNS:
        return True
    figures = [row[at] for row in table.rows for at, column in enumerate(table.columns) if column.numeric]
    return any(isinstance(each, str) and len(each) > LONGEST_FIGURE for each in figures)
