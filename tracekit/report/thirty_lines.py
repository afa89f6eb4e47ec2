"""An overview as lines of the terminal, thirty at 100 columns."""

import textwrap
from collections.abc import Iterator
from dataclasses import replace

from tracekit.names import clipped_within, printable
from tracekit.numbers import counted
from tracekit.report.accounts import shown_account
from tracekit.report.document import BLANK, Account, Cell, Line, Name, Overview, Styled, Summary, Table, columns
from tracekit.report.terminal import height

#: Of a line, where nobody says; and between things on one line.
WIDTH, GAP = 100, "   "
#: Characters of the longest bar, of a name at least, of a column's head, and between columns.
BAR, LEAST_NAME, LONGEST_HEAD, BETWEEN = 12, 24, 20, 2
MOST_LINES = 30
#: A narrow terminal shows so many of a table's columns at least.
FEWEST_COLUMNS = 3

RESULT_STYLES = {"faster": "bold green", "slower": "bold red", "inconclusive": "bold yellow"}
OUTCOME_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "bold yellow"}
MARK_STYLES = {"ok": "green", "!!": "bold red", "+": "yellow"}


def verdict_lines(overview: Overview) -> tuple[Line, ...]:
    """The gate's outcome, the verdict, and what it rests on."""
    style = RESULT_STYLES.get(overview.result[1], "bold") if overview.result else "bold"
    answer = "    ".join(filter(None, (overview.headline, overview.walls, overview.spread)))
    return (
        *_gate(overview),
        Line(f"  {answer}", style),
        *([Line(f"  {overview.evidence}")] if overview.evidence else []),
    )


def overview_lines(overview: Overview, places: tuple[str, ...] | None, width: int = WIDTH) -> Summary:
    """`places` are where all of it is, None where nobody can look there; `width` is the terminal's.

    Where all would take more than thirty lines, the last notes and advice are counted and not shown. A gate's
    conditions come before any advice, and before the command that is on the page too.
    """
    for notes, advice in ((9, 9), (3, 2), (2, 2), (2, 1), (1, 1), *([(1, 0)] if overview.gate else [])):
        left = len(overview.notes[notes:]) + len(overview.advice[advice:])
        fewer = replace(
            overview,
            notes=overview.notes[:notes],
            advice=overview.advice[:advice],
            repeat=overview.repeat if advice else "",
            hidden=overview.hidden + left,
        )
        lines = every_line(fewer, places, width)
        if height(lines, width) <= MOST_LINES:
            break
    return lines


def every_line(overview: Overview, places: tuple[str, ...] | None, width: int) -> Summary:
    """The same, however many there are."""
    more = f"More: -v ({counted(overview.hidden, 'more note')})" if overview.hidden else "More: -v"
    account = [_account(overview.account, width)] if overview.account else []
    tables = [part for table in overview.tables for part in (BLANK, _fitted(table, width))]
    checks = [Line(each.text, "", f"  {each.mark:<5}", MARK_STYLES.get(each.mark, "")) for each in overview.checks]
    repeat = [Line(f"Repeat {overview.repeat}", "dim", unbroken=True)] if overview.repeat else []
    return (
        Line(clipped_within(overview.subject, width), "dim"),
        BLANK,
        *verdict_lines(overview),
        *(Line(note, "", "  ! ", "yellow") for note in overview.notes),
        *((BLANK, *overview.why, *_advised(overview, width)) if overview.why else ()),
        *((BLANK, *account) if account else ()),
        *([Line(overview.bottleneck)] if overview.bottleneck else []),
        *tables,
        *(() if overview.why else _advised(overview, width)),
        *((BLANK, *checks) if checks else ()),
        *((BLANK, *repeat, *last_lines(*places, more, width=width)) if places is not None else ()),
    )


def last_lines(*pieces: str, width: int = WIDTH) -> tuple[Line, ...]:
    """As many lines as it takes, none of which ends within a piece."""
    lines = [*pieces[:1]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(GAP) + len(piece) <= width:
            lines[-1] += GAP + piece
        else:
            lines.append(piece)
    return tuple(Line(line, "dim", unbroken=True) for line in lines)


def _gate(overview: Overview) -> Iterator[Line]:
    if overview.gate is not None:
        yield Line(overview.gate.words, OUTCOME_STYLES[overview.gate.ends_as])
        yield from (Line(f"  {said}", OUTCOME_STYLES[outcome]) for outcome, said in overview.gate.conditions)
        yield BLANK


def _account(account: Account, width: int) -> Table:
    shown = shown_account(account)
    # What became of the kernels would part the rows of a narrower table.
    told = shown.is_compared and width >= WIDTH
    heads = [clipped_within(printable(each), LONGEST_HEAD) for each in shown.heads if shown.is_compared]
    heads = heads or ["", *shown.heads[1:]]
    beside = sum(
        BETWEEN + max(len(head), *(len(row.figures[at]) for row in shown.rows)) for at, head in enumerate(heads)
    )
    words = BETWEEN + max(len(row.what) for row in shown.rows) if told else 0
    room = max(width - beside - words - (BETWEEN + BAR if shown.is_compared else 0), LEAST_NAME)
    names = [clipped_within(f"{'  ' * (row.level + 1)}{printable(row.name)}", room) for row in shown.rows]
    bar = max(min(BAR, width - max(map(len, names)) - beside - 2 * BETWEEN), 0)
    rows = tuple(
        (name, *row.figures, *((_bar(row.share, bar),) if shown.is_compared else ()), *((row.what,) if told else ()))
        for name, row in zip(names, shown.rows, strict=True)
    )
    words_beside = columns(*[""] * (shown.is_compared + told))
    return _fitted(Table("", (*columns(shown.title, figures=heads), *words_beside), rows), width)


def _bar(share: float, longest: int) -> Styled:
    sign, style = ("+", "red") if share > 0 else ("-", "green")
    return Styled(((sign * round(abs(share) * longest), style),))


def _fitted(table: Table, width: int) -> Table:
    """Its heads on several lines and its names cut where there is not room for all; last, without its last columns."""
    if sum(map(max, widths := _widths(table))) + BETWEEN * len(widths) <= width:
        return table
    left = 0
    while (lacking := sum(least for least, _ in _widths(table)) + BETWEEN * len(table.columns) - width) > 0:
        longest = max(len(_text(row[0])) for row in table.rows)
        if longest > LEAST_NAME:
            room = max(longest - lacking, LEAST_NAME)
            rows = tuple((clipped_within(_text(row[0]), room), *row[1:]) for row in table.rows)
            table = replace(table, rows=rows)
        elif len(table.columns) > FEWEST_COLUMNS:
            left += 1
            table = replace(table, columns=table.columns[:-1], rows=tuple(row[:-1] for row in table.rows))
        else:
            break
    heads = tuple(
        replace(column, label=textwrap.fill(column.label, max(least, 1), break_long_words=False))
        for column, (least, _) in zip(table.columns, _widths(table), strict=True)
    )
    note = "\n".join(filter(None, (table.note, f"{counted(left, 'more column')} in a wider terminal" if left else "")))
    return replace(table, columns=heads, note=note)


def _widths(table: Table) -> list[tuple[int, int]]:
    """What each column takes at least, and on one line: names and figures stay whole, words of heads and others too."""
    widths = []
    for at, column in enumerate(table.columns):
        texts = [_text(row[at]) for row in table.rows]
        whole = texts if column.numeric or at == 0 else [word for text in texts for word in text.split()]
        widths.append(
            (max(map(len, (*column.label.split(), *whole)), default=0), max(map(len, (column.label, *texts))))
        )
    return widths


def _text(cell: Cell) -> str:
    if isinstance(cell, Styled):
        return "".join(text for text, _ in cell.pieces)
    return cell.short if isinstance(cell, Name) else cell


def _advised(overview: Overview, width: int) -> Iterator[Line]:
    if not overview.advice:
        return
    yield from (BLANK, Line("Try next", "bold"))
    for number, each in enumerate(overview.advice, 1):
        reason = f"({each.why})" if each.why else ""
        # One below the other where there is room.
        told = f"{each.what:<22} {reason:<33} {each.gain}" if width >= WIDTH else f"{each.what} {reason}  {each.gain}"
        yield Line(told.rstrip(), lead=f"  {number}  ")
