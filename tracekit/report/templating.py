"""What all pages share: how templates are filled in, and the files they take in whole."""

from __future__ import annotations

import base64
import datetime
import hashlib
import re
from functools import cache
from importlib import resources

import jinja2
from markupsafe import Markup

from tracekit.names import printable
from tracekit.numbers import duration
from tracekit.report.table import Name, Table
from tracekit.report.words.findings import finding_advice, finding_evidence, finding_title

#: A narrow screen shows tables with more columns, or longer figures, as stacked rows.
MOST_COLUMNS = 3
LONGEST_FIGURE = 20

#: A space between a figure and its unit, as in `12.3 µs`; not one between two figures, as in `1.136 to 1.155`.
UNIT_SPACE = re.compile(r"(?<=\d) (?!to\b|[(\N{MIDDLE DOT}])")


@cache
def environment() -> jinja2.Environment:
    """Everything is escaped, and what is not there is an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("tracekit.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["duration"] = duration
    made.filters["moment"] = moment
    made.filters["title_of"] = finding_title
    made.filters["evidence_of"] = finding_evidence
    made.filters["advice_of"] = finding_advice
    made.filters["unbroken"] = _unbroken
    made.tests["wide"] = _is_wide
    made.tests["name"] = lambda cell: isinstance(cell, Name)
    return made


def _unbroken(figure: str) -> str:
    """A figure that is not parted from its unit; what follows may go to the next line."""
    return UNIT_SPACE.sub("\N{NO-BREAK SPACE}", printable(figure))


def _is_wide(table: Table) -> bool:
    """Whether a narrow screen cannot show the table's columns side by side."""
    if len(table.columns) > MOST_COLUMNS:
        return True
    figures = [row[at] for row in table.rows for at, column in enumerate(table.columns) if column.numeric]
    return any(isinstance(each, str) and len(each) > LONGEST_FIGURE for each in figures)


def moment(started: str) -> str:
    """`2026-11-21 07:00 UTC` of an ISO time."""
    return datetime.datetime.fromisoformat(started).astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _shown(value: object) -> object:
    """Text from traces without control characters; what is markup already is the page's own."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def asset(name: str) -> str:
    """A file of the templates' folder."""
    return (resources.files("tracekit.report") / "templates" / name).read_text(encoding="utf-8")


def script_hash(script: bytes) -> str:
    """What a policy names a script by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"


def policy(*scripts: str) -> str:
    """Only these scripts, named by `script_hash`, may run, and nothing may be fetched."""
    return (
        f"default-src 'none'; script-src {' '.join(scripts)}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
