"""A summary as rich shows it. Names come from traces, so nothing is read as markup."""

import re
import textwrap

from rich import box
from rich.cells import cell_len
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.console import recording_console
from tracekit.names import clipped_within, printable
from tracekit.printing import printable_lines
from tracekit.report.document import Cell, Commands, GroupedTable, Line, Name, Styled, Summary, Table

#: Characters of a line before a command is continued on the next.
COMMAND_WIDTH = 72
#: Rows below a name are so far to its right.
INDENT = 2

ELEMENT = '<pre style="line-height: 1.4; overflow-x: auto; white-space: pre">{code}</pre>'


def shown(summary: Summary) -> RenderableType:
    """From top to bottom."""
    drawn: list[RenderableType] = []
    for part in summary:
        match part:
            case Line():
                drawn.append(_line(part))
            case Table():
                # Without a caption the heads are one, and no line parts them from the rows.
                head = None if not part.caption else box.SIMPLE_HEAD
                table = RichTable(box=head, pad_edge=False, show_edge=False, header_style="bold")
                for at, column in enumerate(part.columns):
                    label = printable_lines(column.label)
                    label = clipped_within(label, 24) if part.caption else label
                    justify: JustifyMethod = "right" if column.numeric else "left"
                    # Names and figures stay whole, and a head's words.
                    whole = not part.caption and (at == 0 or column.numeric)
                    widest = [*label.split(), *(_cell(row[at]).plain for row in part.rows)] if whole else []
                    least = max(map(cell_len, widest), default=None)
                    first = at == 0 and not part.caption
                    table.add_column(Text(label), justify=justify, overflow="fold", min_width=least, no_wrap=first)
                for row in part.rows:
                    table.add_row(*map(_cell, row))
                drawn += [Text(printable(part.caption), style="bold"), table] if part.caption else [table]
                drawn += [Text(printable_lines(part.note), style="dim")] if part.note else []
            case GroupedTable():
                # The columns of all groups stand in one line, and each name has the whole line. A heading may take two
                # lines, a figure not.
                every = [row for _, rows in part.groups for row in rows]
                widths = [
                    max(*map(len, head.split("\n")), *(len(row[at][0]) for row in every))
                    for at, head in enumerate(part.columns)
                ]
                drawn.append(_rows(part, widths, (), heads=True))
                for name, rows in part.groups:
                    drawn += [Text(printable(name), "bold"), _rows(part, widths, rows)]
            case Commands():
                drawn.append(_command(part.text))
    return Group(*drawn)


def height(summary: Summary, width: int) -> int:
    """How many lines it takes in a terminal so wide."""
    return len(recording_console(width).render_lines(shown(summary), pad=False))


def as_html(summary: Summary, width: int) -> str:
    """The same as an element of HTML, so many characters wide."""
    console = recording_console(width)
    console.print(shown(summary))
    return console.export_html(inline_styles=True, code_format=ELEMENT)


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


def _rows(
    table: GroupedTable, widths: list[int], rows: tuple[tuple[tuple[str, str], ...], ...], *, heads: bool = False
) -> RichTable:
    """Where the terminal is narrow, the first column and the parted one take two lines; no other figure is parted."""
    drawn = RichTable(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_header=heads, header_style="dim")
    first = INDENT + widths[0]
    # Columns with a width of their own never give way; these are as wide as their text.
    head, *figure_heads = map(printable_lines, table.columns)
    drawn.add_column((" " * INDENT + head).ljust(first), overflow="fold")
    for at, (head, width) in enumerate(zip(figure_heads, widths[1:], strict=True), 1):
        if at == table.parted:
            drawn.add_column(" " * (width - len(head.split("\n")[0])) + head, justify="right", overflow="fold")
        else:
            drawn.add_column(head, justify="right", width=width, no_wrap=True)
    for (name, _), *cells in rows:
        figures = [Text(printable(text), style) for text, style in cells]
        parted = figures[table.parted - 1]
        parted.pad_left(widths[table.parted] - parted.cell_len)
        drawn.add_row(Text((" " * INDENT + printable(name)).ljust(first)), *figures)
    return drawn


def _command(text: str) -> Text:
    """Long commands are continued with backslashes, so that they can be copied."""
    lines = command_lines(text, COMMAND_WIDTH) if "tracekit " in text else [printable(text)]
    return Text("  " + "\n    ".join(lines), "cyan", no_wrap=True, overflow="ignore")


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
