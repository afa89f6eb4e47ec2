"""A summary as rich shows it. Names come from traces, so nothing is read as markup."""

import re
import textwrap

from rich.cells import cell_len
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.console import recording_console
from tracekit.names import printable
from tracekit.printing import printable_lines
from tracekit.report.document import Cell, Line, Markdown, Name, Styled, Summary, Table

ELEMENT = '<pre style="line-height: 1.4; overflow-x: auto; white-space: pre">{code}</pre>'


def shown(summary: Summary) -> RenderableType:
    """From top to bottom."""
    drawn: list[RenderableType] = []
    for part in summary:
        match part:
            case Line():
                drawn.append(_line(part))
            case Table():
                drawn.append(_table(part))
                drawn += [Text(printable_lines(part.note), style="dim")] if part.note else []
            case Markdown():
                # The first screen is not to wait for it.
                from tracekit.report.terminal_markdown import TerminalMarkdown

                drawn.append(TerminalMarkdown(part.text))
    return Group(*drawn)


def _table(part: Table) -> RichTable:
    """The heads are its caption, and no line parts them from the rows."""
    table = RichTable(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for at, column in enumerate(part.columns):
        label, is_name = printable_lines(column.label), at == 0
        # Names and figures stay whole, and a head's words.
        widest = [*label.split(), *(_cell(row[at]).plain for row in part.rows)] if is_name or column.numeric else []
        least = max(map(cell_len, widest), default=None)
        justify: JustifyMethod = "right" if column.numeric else "left"
        table.add_column(Text(label), justify=justify, overflow="fold", min_width=least, no_wrap=is_name)
    for row in part.rows:
        table.add_row(*map(_cell, row))
    return table


def height(summary: Summary, width: int) -> int:
    """How many lines it takes in a terminal so wide."""
    return len(recording_console(width).render_lines(shown(summary), pad=False))


def as_html(summary: Summary, width: int) -> str:
    """The same as an element of HTML, so many characters wide."""
    console = recording_console(width)
    console.print(shown(summary))
    return console.export_html(inline_styles=True, code_format=ELEMENT)


def as_text(summary: Summary, width: int) -> str:
    """The same as plain text."""
    console = recording_console(width)
    console.print(shown(summary))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def _line(part: Line) -> RenderableType:
    """What does not fit goes on below the text, not below what leads it."""
    text = Text(printable(part.text), part.style)
    if part.unbroken and not part.lead:
        text.no_wrap, text.overflow = True, "ignore"
        return text
    indent = len(part.text) - len(part.text.lstrip()) if not part.lead else 0
    if not part.lead and not indent:
        return text
    lined = RichTable.grid()
    lined.add_column(no_wrap=True)
    lined.add_column(overflow="fold")
    lined.add_row(Text(printable(part.lead) or " " * indent, part.lead_style), text[indent:] if indent else text)
    return lined


def _cell(cell: Cell) -> Text:
    if isinstance(cell, Styled):
        return Text.assemble(*((printable_lines(text), style) for text, style in cell.pieces))
    text = printable(cell.short if isinstance(cell, Name) else cell)
    # Justifying to the right would drop the blanks at its end.
    return Text(text, justify="left" if text.endswith(" ") else None)


def command_lines(text: str, width: int) -> list[str]:
    """The command, continued with backslashes. What is quoted stays in one piece, and an option on one line with its
    value."""
    whole = re.sub("'[^']*'|\"[^\"]*\"", lambda quoted: quoted[0].replace(" ", "\0"), printable(text))
    joined = re.sub(r"(?<!\S)(--\S+) (?!-)", r"\1\0", whole)
    if len(joined) > width:
        # Room for what continues it.
        *lines, last = textwrap.wrap(joined, max(width - 2, 1), break_long_words=False, break_on_hyphens=False)
        return [*(f"{line} \\".replace("\0", " ") for line in lines), last.replace("\0", " ")]
    return [joined.replace("\0", " ")]
