"""A report before it is rendered. Page, markdown and terminal know these nouns, and nothing of what is told by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

#: Parts find room in the markdown twin, which is bounded, in this order, the earlier of one rank before the later. What
#: is FIRST stands above the details, and is not folded.
FIRST, WARNINGS, FINDINGS, TABLES, MORE_FINDINGS, DETAILS, LAST = range(7)


class Name(Struct, frozen=True):
    """A kernel, call or operator name: `short` to read, `full` where there is room. Or a command, to be copied."""

    full: str
    short: str
    is_command: bool = False


class Styled(Struct, frozen=True):
    """A cell that only the terminal shows: pieces of text, each with rich's style of it."""

    pieces: tuple[tuple[str, str], ...]


Cell = str | Name | Styled


class Column(Struct, frozen=True):
    label: str
    numeric: bool = True


def columns(*words: str, figures: Iterable[str] = ()) -> tuple[Column, ...]:
    """Columns of words, and after them those of figures."""
    return *(Column(each, numeric=False) for each in words), *map(Column, figures)


class Table(Struct, frozen=True):
    """`note` says what a reader must know of the figures; empty when nothing."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


def filled_table(
    caption: str, heads: tuple[Column, ...], rows: Iterable[tuple[Cell, ...]], note: str = ""
) -> Table | None:
    """The table of these rows; None where there are none."""
    found = tuple(rows)
    return Table(caption, heads, found, note) if found else None


class DrawnBar(Struct, frozen=True):
    """A bar of a chart, from `start` to `end` in its unit. `colour` is one of the style sheet's (`gain`), `kind` what
    the legend calls it, `words` are said on pointing at it, `text` stands in or beside it."""

    start: float
    end: float
    colour: str
    words: str
    text: str
    kind: str = ""
    ink: str = "ink"  #: The colour of a text in it.
    strength: float = 1.0  #: How much of its colour covers the paper.
    hatched: bool = False
    reach: tuple[float, float] | None = None  #: From where to where its end may lie.


class ChartRow(Struct, frozen=True):
    label: str
    bars: tuple[DrawnBar, ...]
    sums: bool = False  #: Whether it is the sum of those above it.


class Chart(Struct, frozen=True):
    """Horizontal bars. `id` is the element that it is drawn into; `description` is what a screen reader says. Bars of a
    row are one line with their texts inside, or a line each with its text beside."""

    id: str
    title: str
    description: str
    unit: str
    rows: tuple[ChartRow, ...]
    inside: bool = False

    @property
    def bars(self) -> tuple[DrawnBar, ...]:
        return tuple(bar for row in self.rows for bar in row.bars)

    @property
    def legend(self) -> tuple[DrawnBar, ...]:
        """The strongest bar of each kind; none where there is one kind without a name."""
        strongest = sorted(self.bars, key=lambda bar: bar.strength)
        kinds = {bar.kind: bar for bar in strongest if bar.kind}
        return tuple(kinds[kind] for kind in dict.fromkeys(bar.kind for bar in self.bars) if kind)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value, 0 among them."""
        values = [0.0, *(value for bar in self.bars for value in (bar.start, bar.end, *(bar.reach or ())))]
        return min(values), max(values)

    def share(self, value: float) -> float:
        """Where the value lies between the ends, in percent."""
        low, high = self.ends
        return round(100 * (value - low) / ((high - low) or 1.0), 3)


class Timelines(Struct, frozen=True):
    """The sides on one axis of time, drawn from `data` by the page's script. `families` and `causes` are those that
    occur, with their words. `intro` says how to read the drawing, `title` what it is of. Of each of the `recordings`
    that can be drawn, the first of which is at first, these are the notes; `notes` are those of all. `choices` name
    them where a reader may choose, `keys` are the headings of families and causes, `what` is what stands in the lanes.
    """

    data: dict[str, Any]
    families: dict[str, str]
    causes: dict[str, str]
    intro: str
    title: str
    stepped: str
    recordings: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    choices: tuple[str, ...] = ()
    what: str = "kernel"
    keys: tuple[str, str] = ("Kernels, by family", "Idle and host, hatched, by cause")


class Figure(Struct, frozen=True):
    """A number as it is read, and as it is sorted by."""

    text: str
    value: float


class Member(Struct, frozen=True):
    """A kernel of side `letter`: how often it ran, and how long in all."""

    letter: str
    name: Name
    text: str


class Excerpt(Struct, frozen=True):
    """Lines of a file, numbered from `first`; `marked` is the number of the one that is meant."""

    title: str
    first: int
    marked: int
    lines: tuple[str, ...]


class KernelCode(Struct, frozen=True):
    """The source of a generated kernel, which any number of rows show; `id` is its address within the page."""

    id: str
    name: str
    lines: tuple[str, ...]


class ExplorerRow(Struct, frozen=True):
    """`label` is what the row is of, `place` where in the model, `words` its other cells of text. `number` is its own,
    from 0. It opens to `members`, without the `left_out` smaller ones, `where`, `facts` (terms and what they are),
    `evidence`, `excerpts` and the code of generated kernels, by the ids in `code`."""

    number: int
    label: str
    words: tuple[str, ...]
    figures: tuple[Figure, ...]
    is_code: bool = False
    place: str = ""
    members: tuple[Member, ...] = ()
    left_out: int = 0
    where: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    code: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """What is said of it where it is opened."""
        where, evidence = ("Where", "Evidence") if self.members else ("Launched by", "Full name")
        said = ((where, ", ".join(self.where)), *self.facts, (evidence, " ".join(self.evidence)))
        return tuple((term, text) for term, text in said if text)


class Explorer(Struct, frozen=True):
    """A table that the page lets its reader sort and search, and open row by row. Its columns are called `head`, those
    of text `words`, then `figures`. `noun` is what the rows are, `anchor` begins the address of each within the page
    (`group-17`), `hint` is what can be searched for, `legends` explain the words that occur, `code` is what rows name.
    A timeline shows each row by its number where it is `in_timeline`."""

    caption: str
    noun: str
    hint: str
    head: str
    words: tuple[str, ...]
    figures: tuple[str, ...]
    rows: tuple[ExplorerRow, ...]
    note: str
    legends: tuple[tuple[str, dict[str, str]], ...] = ()
    code: tuple[KernelCode, ...] = ()
    anchor: str = "row"
    in_timeline: bool = False


class TreeNode(Struct, frozen=True):
    """A row that opens: `share` is its change as a share of the largest one, -1 to 1; `group` is the kernel group that
    it is, None of a module."""

    name: str
    figures: tuple[str, ...]
    share: float
    children: tuple[TreeNode, ...] = ()
    group: int | None = None
    is_open: bool = False


class Tree(Struct, frozen=True):
    """Rows within rows. `columns` are those of figures; the first, of names, is called `head`."""

    caption: str
    head: str
    columns: tuple[str, ...]
    nodes: tuple[TreeNode, ...]


class HeatCell(Struct, frozen=True):
    """`tone` is gain, loss, even, failed or missing; `percent` how strong its colour is."""

    text: str
    tone: str
    percent: int = 0
    small: tuple[str, ...] = ()


class HeatMap(Struct, frozen=True):
    """Rows of coloured cells, which need no script. `keys` are tones, their words and strengths, `head` is what rows
    are."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    keys: tuple[tuple[str, str, int], ...]
    note: str
    head: str = "Work"


class FindingText(Struct, frozen=True):
    """A finding in words; `id` is its address within the page. `saving` is what it could save, `savings` says it in
    sentences, and `share` is how much of a call that is, None where not known. `advice` may be empty, and is a command
    where `is_command`. `groups` are the kernel groups that it is about."""

    id: str
    severity: str
    title: str
    evidence: str
    saving: str
    savings: tuple[str, ...] = ()
    advice: str = ""
    is_command: bool = False
    notes: tuple[str, ...] = ()
    share: float | None = None
    groups: tuple[int, ...] = ()


class Findings(Struct, frozen=True):
    """The gravest first; `level` is that of their headings in the page."""

    findings: tuple[FindingText, ...]
    level: int = 3


class Bullets(Struct, frozen=True):
    """A list; without a `title` it stands in something that has one."""

    title: str
    items: tuple[str, ...]


class Definitions(Struct, frozen=True):
    """Terms and what they mean."""

    title: str
    terms: tuple[tuple[str, str], ...]


class Pictures(Struct, frozen=True):
    """Captions, and addresses that hold the pictures themselves."""

    pictures: tuple[tuple[str, str], ...]


class Commands(Struct, frozen=True):
    """What to type, a line each."""

    text: str


class Output(Struct, frozen=True):
    """Lines that a program printed."""

    lines: tuple[str, ...]


class Fold(Struct, frozen=True):
    """What a reader opens if wanted."""

    title: str
    blocks: tuple[Block, ...]


class Beside(Struct, frozen=True):
    """Blocks that a wide page shows beside each other; `layout` is the page's class."""

    blocks: tuple[Block, ...]
    layout: str = "pair"


#: What has rows, and is a table in the twin.
Tabular = Table | Explorer | Tree | HeatMap
#: What a section is made of; a bare string is a paragraph.
Block = (
    str | Tabular | Chart | Timelines | Pictures | Findings | Bullets | Definitions | Commands | Output | Fold | Beside
)


class Part(Struct, frozen=True):
    """What stands at one place of a section; `rank` is how soon it finds room in the twin."""

    block: Block | None
    rank: int = DETAILS
    page_only: bool = False


class Section(Struct, frozen=True):
    """`id` is its address within the page, `short` what the list of contents calls it. One with a `hint`, which says in
    a line what is in it, is opened by who wants it."""

    id: str
    title: str
    parts: tuple[Part, ...]
    short: str = ""
    hint: str = ""


class GateText(Struct, frozen=True):
    """What was demanded, each condition's outcome before its sentence. `ends_as` is pass, fail or inconclusive."""

    words: str
    ends_as: str
    conditions: tuple[tuple[str, str], ...]


class AccountRow(Struct, frozen=True):
    """A part of a call: `us` are the sides' times, `what` says what became of it, `level` 0 is GPU kernels or idle
    time, 1 a part of these, 2 a part of the row above. Of an `unjudged` one the change is neither gain nor loss.
    `half_us` is by how much each of `us` and the change may be off, which their digits show; empty where that is not
    known. `within_us` is shown after the change's ±; None likewise. One that `sums` is all rows of level 0 together."""

    name: str
    us: tuple[float, ...]
    what: str = ""
    level: int = 1
    unjudged: bool = False
    half_us: tuple[float, ...] = ()
    within_us: float | None = None
    sums: bool = False

    @property
    def delta_us(self) -> float:
        """The change of two sides; of any other number none is told."""
        return self.us[1] - self.us[0] if len(self.us) == 2 else 0.0


class Account(Struct, frozen=True):
    """Where a call's time goes. The rows of level 0 but sums add up to the call, those of level 1 below one to it."""

    title: str
    labels: tuple[str, ...]
    rows: tuple[AccountRow, ...]


class Bar(Struct, frozen=True):
    """A side's call, or a rank's span, as a stacked bar. `segments` are microseconds by kind: library, other,
    communication where there is any, and idle; of a rank compute, transfer, waiting and idle. They add up to
    `total_us`. `mark` says what is wrong with it."""

    label: str
    total_us: float
    segments: tuple[tuple[str, float], ...]
    mark: str = ""


class Advice(Struct, frozen=True):
    """What to try. `gain` says what it brought or may bring; `command` is what to type in full, empty where there is
    none. What `starts` makes compiling shorter, not calls."""

    what: str
    why: str
    gain: str
    measured: bool
    command: str
    starts: bool = False


class Check(Struct, frozen=True):
    """`mark` is `ok`, `!!` of what is wrong, `more` of what costs more, or empty."""

    mark: str
    text: str


class Overview(Struct, frozen=True):
    """The answer in thirty lines, or on the page's first screen.

    `differs` is what else differs between what is compared, `headline` the answer in a few words, `walls` from what to
    what, `spread` its interval in words and `interval` its low end, middle and high end; `elsewhere` is what the next
    process may find. `evidence` is what it rests on. `notes` change how the headline is read; `why` are lines on why
    there is no better answer. `bar_words` is what segments of `bars` are called, where not as those of a call. `slower`
    is what the account's rows do not say of what became slower, `graph_breaks` are those that cost much, in ever fewer
    words, `repeat` is the command that measures it again, `measured_with` what it was measured with. Where nothing in
    `advice` makes calls faster, that is said if `nothing_faster`. `left_out` is what the answer does not cover, for
    where notes are not shown. `hidden` is how many notes and findings are not shown.
    """

    subject: str
    headline: str
    differs: str = ""
    result: tuple[str, str] | None = None
    gate: GateText | None = None
    walls: str = ""
    spread: str = ""
    interval: tuple[float, float, float] | None = None
    elsewhere: tuple[float, float] | None = None
    evidence: str = ""
    notes: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    bar_words: dict[str, str] | None = None
    why: tuple[Line, ...] = ()
    account: Account | None = None
    slower: str = ""
    bottleneck: str = ""
    graph_breaks: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    advice: tuple[Advice, ...] = ()
    nothing_faster: bool = False
    checks: tuple[Check, ...] = ()
    repeat: str = ""
    measured_with: str = ""
    left_out: str = ""
    hidden: int = 0


class Report(Struct, frozen=True):
    """`title` is the answer in a sentence, `overview` the page's first screen. A `dense` report has many narrow
    columns."""

    title: str
    overview: Overview
    sections: tuple[Section, ...]
    dense: bool = False

    def drawn(self) -> Iterator[Block]:
        """Every block of the page, without those within others."""
        return (part.block for section in self.sections for part in section.parts if part.block is not None)


def standing_section(id_: str, title: str, *parts: Part | Block | None, short: str = "", hint: str = "") -> Section:
    """The section of the parts that there are."""
    made = (each if isinstance(each, Part) else Part(each) for each in parts)
    return Section(id_, title, tuple(each for each in made if each.block), short, hint)


def section(id_: str, title: str, *parts: Part | Block | None, short: str = "", hint: str = "") -> Section | None:
    """The same; None where it has nothing but words."""
    made = standing_section(id_, title, *parts, short=short, hint=hint)
    return None if all(isinstance(each.block, str) for each in made.parts) else made


class Line(Struct, frozen=True):
    """A line of the terminal, with what stands before it in another style: `warning: `. Styles are rich's. `unbroken`
    are paths and commands: they are copied, so no line ends within them."""

    text: str
    style: str = ""
    lead: str = ""
    lead_style: str = ""
    unbroken: bool = False


class Markdown(Struct, frozen=True):
    """What a report's twin says, for the terminal."""

    text: str


#: What the terminal shows, from top to bottom.
BLANK = Line("")
Summary = tuple[Line | Table | Markdown, ...]
