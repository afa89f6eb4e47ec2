"""A report in the terminal: its verdict, its overview in thirty lines at 100 columns, or all of it."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from tracekit.names import clipped_within, printable
from tracekit.numbers import counted
from tracekit.report import document as doc
from tracekit.report.accounts import NO_DIGIT, ShownRow, advised, shown_account
from tracekit.report.document import BLANK, Account, Cell, Line, Name, Overview, Styled, Summary, Table, columns
from tracekit.report.terminal import as_html, as_text, command_lines, height
from tracekit.report.words.short import SHORTER

#: How much is shown: the verdict, thirty lines, or these and everything else.
Detail = Literal["verdict", "brief", "all"]
#: Of a line, where nobody says; and between things on one line.
WIDTH, GAP = 100, "   "
#: Characters of the longest bar, of a column's head, and between columns.
BAR, LONGEST_HEAD, BETWEEN = 12, 20, 2
#: A shorter bar tells nothing; a shorter name as little, unless the terminal is narrower than so many of them.
LEAST_BAR, LEAST_NAME, NAMES_ACROSS = 4, 24, 3
#: A name so long is not cut for reasons: these go below.
KEPT_NAME = 36
MOST_LINES, MOST_NARROW_LINES = 30, 38
#: A narrow terminal shows so many of a table's columns at least.
FEWEST_COLUMNS = 3
RESULT_STYLES = {"open": "bold yellow", "faster": "bold green", "slower": "bold red", "inconclusive": "bold yellow"}
OUTCOME_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "bold yellow"}
MARKS = {"more": "+"}
MARK_STYLES = {"ok": "green", "!!": "bold red", "more": "yellow"}


def shown_overview(
    overview: Overview,
    report: doc.Report | None,
    page: Path | None,
    more: tuple[str, ...] = (),
    detail: Detail = "brief",
    width: int = WIDTH,
) -> Summary:
    """`report` has everything else, and may be None where that is not shown; `page` is where it lies, None where it was
    not written, `more` is said after that, `width` is the terminal's."""
    places = (*((f"Report {page}",) if page else ()), *more)
    if detail == "verdict":
        left_out = (_note(overview.left_out),) if overview.left_out else ()
        return *verdict_lines(overview, width), *left_out, *last_lines(*places[:1] if page else (), width=width)
    if detail == "brief" or report is None:
        return overview_lines(overview, places, width)
    from tracekit.report.markdown import details_of

    all_else = doc.Markdown(details_of(report))
    return *every_line(overview, None, width), BLANK, all_else, BLANK, *last_lines(*places, width=width)


def overview_html(overview: Overview) -> str:
    """The thirty lines as an element of HTML, for a notebook."""
    return as_html(overview_lines(overview, None), WIDTH)


def overview_text(overview: Overview) -> str:
    """The thirty lines as plain text, for `print`."""
    return as_text(overview_lines(overview, None), WIDTH)


def few_lines(overview: Overview, *more: str) -> str:
    """What it is of and the answer, a line each, and whatever more there is to say."""
    answer = "    ".join(filter(None, (overview.headline, overview.walls, overview.spread)))
    return "\n".join(map(printable, filter(None, (overview.subject, answer, *more))))


def verdict_lines(overview: Overview, width: int = WIDTH) -> tuple[Line, ...]:
    """The gate's outcome, what else differs, the verdict, and what it rests on. The interval takes a line of its own
    where it must."""
    style = RESULT_STYLES.get(overview.result[1], "bold") if overview.result else "bold"
    answer = "    ".join(filter(None, (overview.headline, overview.walls)))
    whole = "    ".join(filter(None, (answer, overview.spread)))
    lines = (whole,) if len(whole) + 2 <= width or not overview.spread else (answer, overview.spread)
    gate = []
    if overview.gate is not None:
        gate = [Line(overview.gate.words, OUTCOME_STYLES[overview.gate.ends_as])]
        gate += [Line(f"  {said}", OUTCOME_STYLES[outcome]) for outcome, said in overview.gate.conditions]
        gate.append(BLANK)
    return (
        *gate,
        *([_note(overview.differs)] if overview.differs else []),
        *(Line(f"  {line}", style) for line in lines),
        *([Line(f"  {overview.evidence}")] if overview.evidence else []),
    )


def overview_lines(overview: Overview, places: tuple[str, ...] | None, width: int = WIDTH) -> Summary:
    """`places` are where all of it is, None where nobody can look there; `width` is the terminal's.

    Where all would take more than thirty lines, blank lines go first. Then the last notes and advice are counted and
    not shown. A gate's conditions come before any advice or note, and before the command that is on the page too. Then
    reasons of rows go, of ranks that command, and their table last.
    """
    for shorter, dense in _shorter(overview):
        lines = every_line(shorter, places, width, dense=dense)
        if height(lines, width) <= (MOST_LINES if width >= WIDTH else MOST_NARROW_LINES):
            break
    return lines


def _shorter(overview: Overview) -> Iterator[tuple[Overview, bool]]:
    """What is left of it, and whether it is dense: first all, last the least."""
    cuts = ((9, 9, False), (9, 9, True), (3, 2, True), (2, 2, True), (2, 1, True), (1, 1, True))
    for notes, advice, dense in (*cuts, *([(1, 0, True), (0, 0, True)] if overview.gate else [])):
        fewer = replace(
            overview,
            notes=overview.notes[:notes],
            advice=overview.advice[:advice],
            repeat=overview.repeat if advice else "",
            hidden=overview.hidden + len(overview.notes[notes:]) + len(overview.advice[advice:]),
        )
        yield fewer, dense
    # Reasons that stand below their rows, then ranks beside an account; the page has all of these whole.
    account = fewer.account and replace(fewer.account, rows=tuple(replace(row, what="") for row in fewer.account.rows))
    yield replace(fewer, account=account), True
    if account and overview.tables:
        yield replace(fewer, account=account, repeat=""), True
        yield replace(fewer, account=account, repeat="", tables=()), True


def every_line(overview: Overview, places: tuple[str, ...] | None, width: int, *, dense: bool = False) -> Summary:
    """The same, however many there are. `dense` leaves out blank lines where the text parts without them."""
    apart = () if dense else (BLANK,)
    # Its names shorter where it would take a second line, as far as there is need.
    subject = overview.subject
    for name, shorter in SHORTER.items():
        subject = subject.replace(name, shorter) if len(subject) > width else subject
    # Whole, or the longest that is a single line.
    breaks = overview.graph_breaks
    breaks = (*(each for each in breaks if not dense or len(each) <= width), *breaks[-1:])[:1]
    account = [_account(overview.account, width)] if overview.account else []
    tables = [part for table in overview.tables for part in (*apart, _fitted(table, width))]
    checks = [
        Line(each.text, "", f"  {MARKS.get(each.mark, each.mark):<3}", MARK_STYLES.get(each.mark, ""))
        for each in overview.checks
    ]
    return (
        Line(subject, "dim"),
        *apart,
        *verdict_lines(overview, width),
        *map(_note, overview.notes),
        *((BLANK, *overview.why, *_advised(overview, width)) if overview.why else ()),
        *((BLANK, *account) if account else ()),
        *(Line(each) for each in (overview.slower, overview.bottleneck, *breaks) if each),
        *tables,
        *(() if overview.why else _advised(overview, width)),
        *((BLANK, *checks) if checks else ()),
        *((*apart, *_repeat(overview.repeat, width), *_places(overview, places, width)) if places is not None else ()),
    )


def _note(told: str) -> Line:
    return Line(told, "", "  ! ", "yellow")


def _repeat(command: str, width: int) -> Iterator[Line]:
    lead = "Repeat "
    for at, line in enumerate(command_lines(command, width - len(lead)) if command else ()):
        yield Line(f"{' ' * len(lead) if at else lead}{line}", "dim", unbroken=True)


def _places(overview: Overview, places: tuple[str, ...], width: int) -> tuple[Line, ...]:
    """Where more is, and how many notes, where that takes no line of its own."""
    with_what = [f"Measured with {overview.measured_with}"] if overview.repeat and overview.measured_with else []
    if not overview.hidden:
        return last_lines(*places, "More: -v", *with_what, width=width)
    short, told = (
        last_lines(*places, more, *with_what, width=width)
        for more in ("More: -v", f"More: -v ({counted(overview.hidden, 'more note')})")
    )
    return short if len(short) < len(told) else told


def last_lines(*pieces: str, width: int = WIDTH) -> tuple[Line, ...]:
    """As many lines as it takes, none of which ends within a piece."""
    lines = [*pieces[:1]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(GAP) + len(piece) <= width:
            lines[-1] += GAP + piece
        else:
            lines.append(piece)
    return tuple(Line(line, "dim", unbroken=True) for line in lines)


def _account(account: Account, width: int) -> Table:
    shown = shown_account(account)
    heads = [clipped_within(each, LONGEST_HEAD) for each in shown.heads if shown.is_compared]
    heads = heads or ["", *shown.heads[1:]]
    widths = [max(len(head), *(len(row.figures[at]) for row in shown.rows)) for at, head in enumerate(heads)]
    beside = sum(BETWEEN + width for width in widths)
    # Bars give way first, then names, and then reasons stand below their rows.
    words = max(len(row.what) for row in shown.rows)
    words += BETWEEN if words else 0
    longest = max(2 * (row.level + 1) + len(row.name) for row in shown.rows)
    below = words > width - beside - max(_least_name(width), min(longest, KEPT_NAME))
    room = max(width - beside - (0 if below else words), _least_name(width))
    names = [clipped_within(f"{'  ' * (row.level + 1)}{row.name}", room) for row in shown.rows]
    left = width - max(map(len, (*names, shown.title))) - beside - (0 if below else words) - 2 * BETWEEN
    bar = min(BAR, left) if shown.is_compared and left >= LEAST_BAR else 0
    told = words and not below
    rows = []
    for name, row in zip(names, shown.rows, strict=True):
        # What ends with blanks is justified here.
        figures = (
            figure.replace(NO_DIGIT, " ").rjust(width) if NO_DIGIT in figure else figure
            for figure, width in zip(row.figures, widths, strict=True)
        )
        rows.append((name, *figures, *((_bar(row, bar),) if bar else ()), *((row.what,) if told else ())))
        if below and row.what:
            rows.append((f"{'  ' * (row.level + 2)}{row.what}", *[""] * (len(row.figures) + bool(bar))))
    words_beside = columns(*[""] * (bool(bar) + bool(told)))
    return _fitted(Table("", (*columns(shown.title, figures=heads), *words_beside), tuple(rows)), width)


def _least_name(width: int) -> int:
    return min(LEAST_NAME, width // NAMES_ACROSS)


def _bar(row: ShownRow, longest: int) -> Styled:
    sign, style = ("+", "red") if row.share > 0 else ("-", "green")
    return Styled(((sign * round(abs(row.share) * longest), "" if row.unjudged else style),))


def _fitted(table: Table, width: int) -> Table:
    """Its heads on several lines and its names cut where there is not room for all; last, without its last columns."""
    if sum(map(max, widths := _widths(table))) + BETWEEN * len(widths) <= width:
        return table
    left = 0
    while (lacking := sum(least for least, _ in _widths(table)) + BETWEEN * len(table.columns) - width) > 0:
        longest = max(len(_text(row[0])) for row in table.rows)
        if longest > _least_name(width):
            room = max(longest - lacking, _least_name(width))
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
    found = advised(overview)
    if found:
        yield BLANK
    for title, advice in found:
        reasons = [f"({each.why})" if each.why else "" for each in advice]
        if all(each.starts for each in advice) or len(advice) == 1:
            every = (f"{each.what} {reason}".rstrip() for each, reason in zip(advice, reasons, strict=True))
            told = "; ".join(filter(None, (", ".join(every), *(each.gain for each in advice))))
            yield Line(told, lead=f"{title}: " if advice else title, lead_style="bold")
            continue
        yield Line(title, "bold")
        whats, widest = max(len(each.what) for each in advice), max(map(len, reasons))
        for number, (each, reason) in enumerate(zip(advice, reasons, strict=True), 1):
            # One below the other where there is room.
            wide = f"{each.what:<{whats}}  {reason:<{widest}}  {each.gain}".rstrip()
            short = f"{each.what} {reason}  {each.gain}".rstrip()
            yield Line(wide if len(wide) + 5 <= width else short, lead=f"  {number}  ")
