"""A report as GitHub's markdown: in the page's order, details folded, and what one comment cannot hold left out."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, cycle

from msgspec import Struct
from msgspec.structs import replace

from tracekit.names import clipped, clipped_within, printable
from tracekit.numbers import duration
from tracekit.report import document as doc
from tracekit.report.accounts import advised, shown_account
from tracekit.report.sections.call import CALL_PARTS

#: What GitHub takes in one comment.
LONGEST = 65_536
#: Kept for the sentence that says what was left out, and for the mark of the report.
RESERVE = 2_500
MARK = 100
#: So many details are named in it, with so much of their titles.
NAMED = 12
LONGEST_TITLE = 80
THE_REST = "The rest is left out for its length; the HTML page has all of it."
#: A table has as many rows as find room in a part of it, and in less with what they open to. Levels of a tree's rows.
LONGEST_TABLE, LONGEST_OPENED = LONGEST // 3, LONGEST // 8
DEEPEST = 2
#: What makes a table's names shortens them. A command is never cut: it could not be run.
LONGEST_CODE = 4000
#: So many findings, the gravest, find room before tables of figures.
FIRST_FINDINGS = 8
#: Characters of an account's longest bar; of a chart's, and of the label beside one, so that a line takes 80.
BAR, CHART_BAR, LONGEST_LABEL = 16, 12, 42
#: Characters of a stacked bar's longest one, and of its segments in turn.
LONGEST_STACK, SHADES = 40, "\N{FULL BLOCK}\N{DARK SHADE}\N{MEDIUM SHADE}\N{LIGHT SHADE}\N{MIDDLE DOT}"
ACTIVE = re.compile(r"([\\`*_\[\]<>#|~@$&])")
#: What begins a list, or underlines a heading, where it begins a line.
LEADING = re.compile(r"^(\s*\d*)([-+.)](?=\s|$)|[-=](?=[-=\s]*$))")
#: What GitHub makes links of though nothing marks them: mentions, mail addresses, issues by number.
REFERENCE = re.compile(r"@(?=\w)|#(?=\d)|GH-(?=\d)", re.IGNORECASE)
WWW = re.compile(r"(www)\.", re.IGNORECASE)


class Piece(Struct, frozen=True):
    """A piece of the text that is left out by itself where there is no room. `text` is markdown, `title` is not. A
    `folded` one has its title above it, and is opened by who wants it."""

    title: str
    text: str
    rank: int
    folded: bool = False


def markdown_of(report: doc.Report) -> str:
    """At most 65,535 characters. What does not fit is left out, the least telling first, and the text says so."""
    return bounded((*_overview(report.title, report.overview), *_pieces(report)))


def details_of(report: doc.Report) -> str:
    """All that is below the overview, nothing folded and nothing left out. What a group opens to stands in its row."""
    sections = (replace(each, parts=tuple(map(_opened_out, each.parts))) for each in report.sections)
    texts = (
        each if isinstance(each, str) else f"### {escaped(each.title)}\n\n{each.text}\n\n" if each.folded else each.text
        for each in _pieces(replace(report, sections=tuple(sections)))
    )
    # What indents a name is kept in a table's cell where it begins with an entity.
    return "".join(texts).replace("\n| \N{NO-BREAK SPACE}", "\n| &nbsp;")


def bounded(pieces: Iterable[str | Piece]) -> str:
    """The pieces in order, at most 65,535 characters.

    Bare words come first: where these alone do not fit, the text ends before what is too long. Then as many of the
    others as there is room for, by rank, the earlier ones before the later. What was left out is said.
    """
    every = tuple(each if isinstance(each, str) else _folded(each) for each in pieces)
    room, whole = LONGEST - RESERVE, True
    kept = set[int]()
    for at, piece in enumerate(every):
        if isinstance(piece, str) and whole:
            whole = len(piece) <= room
            room -= len(piece) if whole else 0
            kept |= {at} if whole else set()
    others = [(piece.rank, at, piece) for at, piece in enumerate(every) if isinstance(piece, Piece)]
    for _, at, piece in sorted(others, key=lambda each: each[:2]):
        if whole and len(piece.text) <= room:
            room -= len(piece.text)
            kept.add(at)
    titles = [piece.title for _, at, piece in others if at not in kept]
    text = "".join(piece if isinstance(piece, str) else piece.text for at, piece in enumerate(every) if at in kept)
    if not whole:
        return f"{text}\n\n{THE_REST}\n"
    if not titles:
        return text
    named = [escaped(clipped(printable(each), LONGEST_TITLE)) for each in titles[:NAMED]]
    more = f" and {len(titles) - NAMED} more" if len(titles) > NAMED else ""
    sentence = f"\nLeft out for length: {'; '.join(named)}{more}. The HTML page has all of it.\n"
    # Escaping makes a title several times as long, if it is made for that.
    return text + (sentence if len(sentence) < RESERVE - MARK else f"\n{THE_REST}\n")


def _folded(piece: Piece) -> Piece:
    if not piece.folded:
        return piece
    # Between the blank lines GitHub reads markdown; the title's line is HTML.
    summary = unlinked(html.escape(printable(piece.title), quote=False))
    return replace(piece, text=f"<details><summary>{summary}</summary>\n\n{piece.text}\n\n</details>\n\n")


def _pieces(report: doc.Report) -> Iterator[str | Piece]:
    parts = [part for section in report.sections for part in section.parts if not part.page_only]
    for part in parts:
        if part.rank == doc.FIRST:
            yield from _shown(part.block, part.rank)
    yield "## Details\n\n"
    for part in parts:
        if part.rank != doc.FIRST:
            yield from _shown(part.block, part.rank)


def _overview(title: str, overview: doc.Overview) -> Iterator[str]:
    """The answer, as the terminal and the page's first screen have it."""
    gate = overview.gate
    yield f"# {escaped(f'{gate.words}. {title}' if gate else title)}\n\n"
    if gate:
        yield "".join(f"- {escaped(sentence)}\n" for _, sentence in gate.conditions) + "\n"
    if overview.differs:
        yield f"**{escaped(overview.differs)}**\n\n"
    headline = overview.headline if overview.headline != title else ""
    answer = " · ".join(filter(None, (headline, overview.walls, overview.spread)))
    yield from (f"{escaped(each)}\n\n" for each in (overview.subject, answer, overview.evidence) if each)
    yield "".join(f"**Note.** {escaped(each)}\n\n" for each in overview.notes)
    if overview.bars:
        yield f"{fenced(stacked(overview.bars, overview.bar_words or CALL_PARTS), 'text')}\n"
    if overview.account:
        yield f"{_account(overview.account)}\n"
    said = (overview.slower, overview.bottleneck, *overview.graph_breaks[:1])
    yield from (f"{escaped(each)}\n\n" for each in said if each)
    yield from (f"{_text(table)}\n" for table in overview.tables)
    for title, advice in advised(overview):
        yield f"**{title}**\n\n"
        for number, each in enumerate(advice, 1):
            why, gain = f" ({each.why})" if each.why else "", f": {each.gain}" if each.gain else ""
            yield f"{number}. {escaped(f'{each.what}{why}{gain}')}\n"
        yield "\n" if advice else ""
    yield "".join(f"- {escaped(' '.join(filter(None, (each.mark, each.text))))}\n" for each in overview.checks) + "\n"


def _account(account: doc.Account) -> str:
    shown = shown_account(account)
    beside = 2 if shown.is_compared else 0
    lines = [
        " | ".join(map(escaped, (shown.title, *shown.heads, *" " * beside))),
        "|".join(("---", *("--:" for _ in shown.heads), *("---",) * beside)),
    ]
    for row in shown.rows:
        bar = ("█" if row.share > 0 else "░") * round(abs(row.share) * BAR)
        cells = (f"{'&nbsp;' * 4 * row.level}{escaped(row.name)}", *row.figures, *(bar, escaped(row.what))[:beside])
        lines.append(" | ".join(cells))
    return "".join(f"| {line} |\n" for line in lines)


def _shown(block: doc.Block | None, rank: int) -> Iterator[Piece | str]:
    """The block under a heading of its own, or as a detail; no drawing is a detail, for a table has its figures."""
    unfolded = rank == doc.FIRST
    piece = _headed if unfolded else _detail
    match block:
        case str():
            yield Piece(block, f"{escaped(block)}\n\n", rank)
        case doc.Table() | doc.Explorer() | doc.Tree() | doc.HeatMap():
            yield piece(block.caption, _text(block), rank)
        case doc.Definitions() | doc.Fold():
            yield _detail(block.title, _text(block), rank)
        case doc.Chart() if unfolded:
            parts = [row for row in block.rows if not row.sums]
            drawn = bars([(row.label, bar.text, bar.end - bar.start) for row in parts for bar in row.bars])
            yield piece(block.title, fenced(drawn, "text"), rank)
        case doc.Output():
            yield Piece("Code", f"{_text(block)}\n\n", rank)
        case doc.Commands() if unfolded:
            yield Piece("Commands", f"{fenced(block.text)}\n\n", rank)
        case doc.Commands():
            yield f"## Reproduce\n\n{fenced(block.text)}\n"
        case doc.Bullets() if unfolded and block.items:
            yield f"## {escaped(block.title)}\n\n"
            yield from (Piece(each, f"- {escaped(each)}\n", doc.WARNINGS) for each in block.items)
            yield "\n"
        case doc.Bullets() if block.items:
            yield _detail(f"{block.title} ({len(block.items)})", _text(block), doc.WARNINGS)
        case doc.Findings():
            yield from _findings(block.findings)
        case doc.Beside():
            for each in block.blocks:
                yield from _shown(each, rank)


def _findings(findings: tuple[doc.FindingText, ...]) -> Iterator[Piece | str]:
    yield "## Findings\n\n"
    for at, finding in enumerate(each for each in findings if each.severity != "info"):
        rank = doc.FINDINGS if at < FIRST_FINDINGS else doc.MORE_FINDINGS
        yield Piece(f"finding: {finding.title}", _finding(finding), rank)
    for finding in findings:
        if finding.severity == "info":
            saving = f" ({finding.saving})" if finding.saving else ""
            yield _detail(f"info: {finding.title}{saving}", _finding_body(finding))


def _headed(title: str, text: str, rank: int) -> Piece:
    return Piece(title, f"### {escaped(title)}\n\n{text}\n", rank)


def _detail(title: str, text: str, rank: int = doc.DETAILS) -> Piece:
    return Piece(title, text.strip(), rank, folded=True)


def _text(block: doc.Block) -> str:
    match block:
        case doc.Table():
            return _table(block)
        case doc.Explorer():
            return _table(_rows_that_open(block), [_opened(row) for row in block.rows])
        case doc.Tree():
            rows = tuple((f"{' ' * 3 * level}{node.name}", *node.figures) for node, level in _within(block.nodes, 0))
            return _table(doc.Table("", doc.columns(block.head, figures=block.columns), rows))
        case doc.HeatMap():
            return _table(_without_colours(block))
        case doc.Bullets():
            return "".join(f"- {escaped(each)}\n" for each in block.items)
        case doc.Definitions():
            return "".join(f"- **{escaped(term)}.** {escaped(text)}\n" for term, text in block.terms)
        case doc.Findings():
            return "".join(map(_finding, block.findings))
        case doc.Output():
            return fenced("\n".join(block.lines), "text").rstrip()
        case doc.Fold():
            return "".join(map(_text, block.blocks))
    raise TypeError(f"markdown does not show {type(block).__name__}")


def _table(table: doc.Table, opened: Sequence[str] = ()) -> str:
    """As many rows as find room, and below them what each is `opened` to."""
    header = " | ".join(escaped(column.label) or " " for column in table.columns)
    rule = "|".join("--:" if column.numeric else "---" for column in table.columns)
    rows = [f"| {' | '.join(map(_cell, row))} |\n" for row in table.rows]
    beside = opened or [""] * len(rows)
    ends = accumulate(len(row) + len(more) for row, more in zip(rows, beside, strict=True))
    kept = sum(end <= (LONGEST_OPENED if opened else LONGEST_TABLE) for end in ends)
    left = f"{kept:,} of {len(rows):,} rows; the HTML page has all of them." if kept < len(rows) else ""
    note = escaped(" ".join(filter(None, (table.note, left))))
    below = "\n".join(filter(None, (note and f"{note}\n", "".join(beside[:kept]))))
    return f"| {header} |\n|{rule}|\n{''.join(rows[:kept])}" + (f"\n{below}" if below else "")


def _rows_that_open(found: doc.Explorer) -> doc.Table:
    has_places = any(row.place for row in found.rows)
    rows = tuple(
        (
            doc.Name(row.label, row.label) if row.is_code else row.label,
            *((row.place,) if has_places else ()),
            *row.words,
            *(figure.text for figure in row.figures),
        )
        for row in found.rows
    )
    legends = (
        f"{head}: {'; '.join(f'{word}: {meaning}' for word, meaning in words.items())}."
        for head, words in found.legends
    )
    heads = doc.columns(found.head, *(("Where",) if has_places else ()), *found.words, figures=found.figures)
    return doc.Table(found.caption, heads, rows, " ".join((found.note, *legends)))


def _opened_out(part: doc.Part) -> doc.Part:
    """Of kernel groups, whose table is too wide for a terminal, with a column for each thing that rows open to; a place
    is among those of the opened row."""
    found = part.block
    if not isinstance(found, doc.Explorer) or not any(row.members for row in found.rows):
        return part
    table, terms = _rows_that_open(found), [dict(row.terms) for row in found.rows]
    labels = [column.label for column in table.columns]
    more = [term for term in dict.fromkeys(term for each in terms for term in each) if term not in labels]
    rows = (
        (
            *(told.get(label, cell) for label, cell in zip(labels, row, strict=True)),
            *(told.get(term, "") for term in more),
        )
        for row, told in zip(table.rows, terms, strict=True)
    )
    return replace(part, block=replace(table, columns=(*table.columns, *doc.columns(*more)), rows=tuple(rows)))


def _opened(row: doc.ExplorerRow) -> str:
    label = _code(row.label) if row.is_code else f"**{escaped(row.label)}**"
    said = escaped("; ".join(f"{term}: {text}" for term, text in row.terms))
    return f"- {label}: {said}\n" if said else ""


def _within(nodes: Iterable[doc.TreeNode], level: int) -> Iterator[tuple[doc.TreeNode, int]]:
    """The nodes and those within them, with their levels, without kernel groups."""
    for node in nodes:
        if node.group is None:
            yield node, level
            yield from _within(node.children if level < DEEPEST else (), level + 1)


def _without_colours(heat: doc.HeatMap) -> doc.Table:
    meanings = {tone: words for tone, words, strength in heat.keys if not strength}

    def told(cell: doc.HeatCell) -> str:
        more = "; ".join(filter(None, (meanings.get(cell.tone), *cell.small)))
        return f"{cell.text} ({more})" if more else cell.text

    rows = tuple((name, *map(told, cells)) for name, cells in heat.rows)
    return doc.Table(heat.caption, doc.columns(heat.head, figures=heat.columns), rows, heat.note)


def bars(rows: Sequence[tuple[str, str, float]]) -> str:
    """A line for each label, figure and value: the longest bar is 12 characters, in steps of half of one, to the left
    of the zero line where the value is less than 0."""
    labels = [clipped_within(printable(label), LONGEST_LABEL) for label, _, _ in rows]
    beside, before = max(map(len, labels)), max(len(figure) for _, figure, _ in rows)
    longest = max(abs(value) for _, _, value in rows) or 1.0
    lines = []
    for label, (_, figure, value) in zip(labels, rows, strict=True):
        whole, half = divmod(round(abs(value) / longest * 2 * CHART_BAR), 2)
        left = ("\N{RIGHT HALF BLOCK}" * half + "\N{FULL BLOCK}" * whole if value < 0 else "").rjust(CHART_BAR)
        right = "\N{FULL BLOCK}" * whole + "\N{LEFT HALF BLOCK}" * half if value > 0 else ""
        lines.append(f"{label:<{beside}}  {figure:>{before}}  {left}\N{BOX DRAWINGS LIGHT VERTICAL}{right}")
    return "\n".join(lines)


def stacked(bars: Sequence[doc.Bar], words: dict[str, str]) -> str:
    """A line for each bar, each kind of segment in a shade of its own, and what the shades are."""
    kinds = list(dict.fromkeys(kind for bar in bars for kind, _ in bar.segments))
    shades = dict(zip(kinds, cycle(SHADES), strict=False))
    labels = [clipped_within(printable(bar.label), LONGEST_LABEL) for bar in bars]
    beside, longest = max(map(len, labels)), max(bar.total_us for bar in bars) or 1.0
    lines = []
    for label, bar in zip(labels, bars, strict=True):
        # Each segment ends where its sum does, so that rounding never adds up.
        ends, drawn = 0.0, ""
        for kind, us in bar.segments:
            ends += us
            drawn += shades[kind] * (round(ends / longest * LONGEST_STACK) - len(drawn))
        lines.append(f"{label:<{beside}}  {duration(bar.total_us):>9}  {drawn} {bar.mark}".rstrip())
    lines.append("  ".join(f"{shade} {words[kind]}" for kind, shade in shades.items()))
    return "\n".join(lines)


def _finding(finding: doc.FindingText) -> str:
    saving = f" ({escaped(finding.saving)})" if finding.saving else ""
    return f"**{escaped(f'{finding.severity}: {finding.title}')}**{saving}\n\n{_finding_body(finding)}"


def _finding_body(finding: doc.FindingText) -> str:
    advice = fenced(finding.advice).rstrip() if finding.is_command else escaped(f"Try: {finding.advice}.")
    paragraphs = (escaped(finding.evidence), *([advice] if finding.advice else []), *map(escaped, finding.notes))
    return "".join(f"{each}\n\n" for each in paragraphs)


def _cell(cell: doc.Cell) -> str:
    if isinstance(cell, doc.Styled):
        raise TypeError("only the terminal shows styles")
    if not isinstance(cell, doc.Name):
        return escaped(cell)
    # The only thing that a table's row reads within code.
    return _code(cell.full if cell.is_command else clipped(cell.short, LONGEST_CODE)).replace("|", "\\|")


def _code(text: str) -> str:
    code = printable(text)
    ticks = _ticks_around(code)
    # Of what begins and ends with a space one of each is taken away, and a tick is no part of those around it.
    apart = " " if code[:1] in ("`", " ") or code[-1:] in ("`", " ") else ""
    return f"{ticks}{apart}{code}{apart}{ticks}"


def fenced(text: str, language: str = "sh") -> str:
    """Lines as a block of code that nothing in it ends, and in which nothing is another character than it was."""
    lines = "\n".join(map(printable, text.split("\n")))
    fence = _ticks_around(lines, 3)
    return f"{fence}{language}\n{lines}\n{fence}\n"


def _ticks_around(code: str, least: int = 1) -> str:
    """More backticks than stand in a row in the code: only as many as these end it."""
    return "`" * max(least, *(len(run) + 1 for run in re.findall("`+", code)), 0)


def escaped(text: str) -> str:
    """The text with nothing in it that markdown or HTML would act on, on one line."""
    return unlinked(LEADING.sub(r"\1\\\2", ACTIVE.sub(r"\\\1", printable(text))))


def unlinked(text: str) -> str:
    """Markdown or HTML of which GitHub makes no link, and which reads as before. Not for code, where nothing becomes a
    link and all of this would show."""
    # An address is found in what is written, where an entity hides it; a reference in what is shown, where an entity
    # is a character again, and only an element parts the text.
    text = REFERENCE.sub(r"\g<0><!-- -->", text).replace("://", ":&#47;&#47;")
    return WWW.sub(r"\1&#46;", text)
