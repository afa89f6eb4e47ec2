"""Several ways to compile at a glance, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from tracekit.model.comparisons import Comparisons
from tracekit.names import printable
from tracekit.numbers import counted
from tracekit.report.several.tables import figures_table
from tracekit.report.several.words import grave, headline, notes_of_runs, sentences, subjects
from tracekit.report.terminal import SEVERITY_STYLES, next_lines, rendered
from tracekit.report.words.findings import finding_title
from tracekit.report.words.notes import note_sentences


def comparisons_summary(told: Comparisons, next_commands: Sequence[str]) -> RenderableType:
    """Which is fastest, the figures side by side, the most serious finding of each, what to type next."""
    style = "bold green" if told.fastest else "bold yellow"
    parts: list[RenderableType] = [Text(printable(subjects(told)), style="dim"), Text()]
    parts.append(Text(headline(told), style=style))
    parts += [Text.assemble(("warning: ", "yellow"), printable(each)) for each in grave(told)]
    parts += [Text(printable(each)) for each in sentences(told)]
    parts += [Text(), rendered(figures_table(told)), Text()]
    for each in told.comparisons:
        for finding in each.findings[:1]:
            title = f"{printable(each.b.label)}: {printable(finding_title(finding))}"
            parts.append(Text.assemble((f"{finding.severity}: ", SEVERITY_STYLES[finding.severity]), title))
    own = len(notes_of_runs(told))
    notes = [*note_sentences(told.notes), *([f"{counted(own, 'note')} on single runs in the report"] if own else [])]
    parts += [Text(), *(Text.assemble(("note: ", "yellow"), printable(each)) for each in notes)] if notes else []
    parts += [Text(), *next_lines(next_commands)]
    return Group(*parts)
