"""An overview as lines of the terminal, thirty at 100 columns."""

import math
from collections.abc import Iterator
from dataclasses import replace

from tracekit.names import clipped_within, printable
from tracekit.numbers import MINUS, counted, percent, scale_of
from tracekit.report.document import (
    Account,
    AccountRow,
    Advice,
    Cell,
    Column,
    Line,
    Name,
    Overview,
    Styled,
    Summary,
    Table,
)

#: Of a line, where nobody says; and between things on one line.
WIDTH, GAP = 100, "   "
#: Characters of the longest bar, of what stands beside names, of figures and bars alone, and of a name at least.
BAR, BESIDE_NAMES, BESIDE_FIGURES, LEAST_NAME = 12, 66, 48, 24
#: Lines in all, as far as none is wider than the terminal.
MOST_LINES = 30
#: Characters beside kernels' names.
BESIDE_KERNELS = 24

RESULT_STYLES = {"faster": "bold green", "slower": "bold red", "inconclusive": "bold yellow"}
OUTCOME_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "bold yellow"}
MARK_STYLES = {"ok": "green", "!!": "bold red", "+": "yellow"}
BLANK = Line("")


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

    Where all would take more than thirty lines, the last notes and advice are counted and not shown.
    """
    for notes, advice in ((9, 9), (3, 3), (3, 2), (2, 2), (2, 1), (1, 1)):
        left = len(overview.notes[notes:]) + len(overview.advice[advice:])
        fewer = replace(
            overview, notes=overview.notes[:notes], advice=overview.advice[:advice], hidden=overview.hidden + left
        )
        lines = _all_lines(fewer, places, width)
        if sum(len(each.rows) + 1 if isinstance(each, Table) else 1 for each in lines) <= MOST_LINES:
            break
    return lines


def _all_lines(overview: Overview, places: tuple[str, ...] | None, width: int) -> Summary:
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
        *(reason_lines(overview) if overview.why else ()),
        *((BLANK, *account) if account else ()),
        *([Line(overview.bottleneck)] if overview.bottleneck else []),
        *tables,
        *(() if overview.why else _advised(overview)),
        *((BLANK, *checks) if checks else ()),
        *((BLANK, *repeat, *last_lines(*places, more, width=width)) if places is not None else ()),
    )


def reason_lines(overview: Overview) -> tuple[Line, ...]:
    """Why there is no better answer, and what to try."""
    return BLANK, *overview.why, *_advised(overview)


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
    compared = len(account.labels) > 1
    # What became of the kernels would part the rows of a narrower table.
    wide = width >= WIDTH
    room = max(width - (BESIDE_NAMES if wide else BESIDE_FIGURES), LEAST_NAME)
    wholes = [
        math.fsum(us for row in account.rows if row.level == 0 and (us := row.us[at]) is not None)
        for at in range(len(account.labels))
    ]
    unit, scale, decimals = scale_of(max(wholes))
    longest = max((abs(row.delta_us or 0.0) for row in account.rows), default=0.0) or 1.0
    rows = []
    for row in account.rows:
        name = f"{'  ' * (row.level + 1)}{clipped_within(printable(row.name), room)}"
        figures = tuple("" if us is None else f"{us / scale:,.{decimals}f}" for us in row.us)
        rest: tuple[Cell, ...]
        if compared:
            rest = (*_change(row, scale, decimals, longest), *([row.what] if wide else []))
        else:
            rest = (percent(row.us[0] / wholes[0], 0) if row.us[0] is not None and wholes[0] else "",)
        rows.append((name, *figures, *rest))
    heads = (Column("change"), Column("", numeric=False)) if compared else (Column("share"),)
    more = (Column("", numeric=False),) if compared and wide else ()
    labels = account.labels if compared else ("",)
    return Table(
        "", (Column(f"{account.title}, {unit}", numeric=False), *map(Column, labels), *heads, *more), tuple(rows)
    )


def _fitted(table: Table, width: int) -> Table:
    """Its names as long as there is room."""
    rows = (
        (clipped_within(row[0].short, max(width - BESIDE_KERNELS, LEAST_NAME)), *row[1:])
        if isinstance(row[0], Name)
        else row
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def _change(row: AccountRow, scale: float, decimals: int, longest: float) -> tuple[Cell, Cell]:
    if row.delta_us is None:
        return "", ""
    change = f"{row.delta_us / scale:+,.{decimals}f}".replace("-", MINUS)
    sign, style = ("+", "red") if row.delta_us > 0 else ("-", "green")
    return change, Styled(((sign * round(abs(row.delta_us) / longest * BAR), style),))


def _advised(overview: Overview) -> Iterator[Line]:
    if overview.advice:
        yield from (BLANK, Line("Try next", "bold"))
        yield from (_advice(number, each) for number, each in enumerate(overview.advice, 1))


def _advice(number: int, advice: Advice) -> Line:
    reason = f"({advice.why})" if advice.why else ""
    return Line(f"  {number}  {advice.what:<22} {reason:<33} {advice.gain}".rstrip())
