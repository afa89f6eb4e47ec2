"""Markdown as rich shows it in a terminal: figures whole and commands to copy, however narrow it is."""

import textwrap
from typing import ClassVar

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracekit.report.terminal import command_lines

#: What commands hold; characters of a line before one is continued on the next.
COMMAND, COMMAND_WIDTH = "tracekit ", 72
#: Characters that nothing parts in a column, and between columns; lines of a cell that has more.
LONGEST_WHOLE, BETWEEN, MOST_LINES = 20, 3, 3


class LeftHeading(Heading):
    new_line = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class WholeCode(CodeBlock):
    """Commands, which can be copied, and whatever else is code, as it is."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in str(self.text).rstrip("\n").split("\n"):
            yield _command(line) if self.lexer_name == "sh" else Text(line, overflow="fold")


def _command(line: str) -> Text:
    lines = command_lines(line, COMMAND_WIDTH) if COMMAND in line else [line]
    return Text("  " + "\n    ".join(lines), "cyan", no_wrap=True, overflow="ignore")


class WholeFigures(TableElement):
    """A table in which words take several lines and figures one; where that leaves no room, a paragraph a row."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.header is None or self.header.row is None or self.body is None:
            return
        heads = [cell.content for cell in self.header.row.cells]
        rows = [[cell.content for cell in row.cells] for row in self.body.rows]
        widths = _widths(heads, rows, options.max_width)
        if not widths:
            yield from (_paragraph(heads, row) for row in rows)
            return
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for head, width, *cells in zip(heads, widths, *rows, strict=True):
            label, is_figure = Text(textwrap.fill(head.plain, width), "bold"), head.justify == "right"
            justify: JustifyMethod = "right" if is_figure else "left"
            whole = is_figure and all(cell.cell_len <= width for cell in cells)
            table.add_column(label, justify=justify, overflow="fold", no_wrap=whole)
        for row in rows:
            table.add_row(*row)
        yield table


def _widths(heads: list[Text], rows: list[list[Text]], room: int) -> list[int]:
    """What each column takes at least; nothing where there is no room for all, or a command, which has its own line."""
    if any(COMMAND in cell.plain for row in rows for cell in row):
        return []
    on_one_line, least = [], []
    for head, *cells in zip(heads, *rows, strict=True):
        longest = max(cell.cell_len for cell in cells)
        word = max(map(cell_len, head.plain.split()), default=1)
        on_one_line.append(max(head.cell_len, longest))
        least.append(max(word, min(longest, max(LONGEST_WHOLE, longest // MOST_LINES))))
    room -= BETWEEN * (len(heads) - 1)
    return next((widths for widths in (on_one_line, least) if sum(widths) <= room), [])


def _paragraph(heads: list[Text], row: list[Text]) -> Group:
    name, *cells = row
    name.justify = "left"
    commands = [_command(cell.plain) for cell in cells if COMMAND in cell.plain]
    told = [
        Text.assemble((head.plain, "dim"), " ", cell)
        for head, cell in zip(heads[1:], cells, strict=True)
        if cell and COMMAND not in cell.plain
    ]
    return Group(name, Padding(Text(" · ").join(told), (0, 0, 0, 2)), *commands)


class TerminalMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": WholeCode,
        "table_open": WholeFigures,
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        # Comments, which keep GitHub from making links, would be lines of their own.
        for token in self.parsed:
            token.children = [each for each in token.children or () if each.type != "html_inline"]
