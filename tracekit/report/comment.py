"""What of a markdown text does one comment hold? Details are folded, and left out first."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

from tracekit.names import clipped, printable
from tracekit.report.escaping import escaped, unlinked

#: What GitHub takes in one comment.
LONGEST = 65_536
#: Kept for the sentence that says what was left out, and for the mark of the report.
RESERVE = 2_500
MARK = 100
#: So many details are named in it, with so much of their titles.
NAMED = 12
LONGEST_TITLE = 80

THE_REST = "The rest is left out for its length; the HTML page has all of it."


#: Parts find room in this order: the first tables, warnings, the first findings, other tables, the other findings, and
#: details last.
FIRST, WARNINGS, FINDINGS, TABLES, MORE_FINDINGS, DETAILS = range(6)


@dataclass(frozen=True, slots=True)
class Part:
    """A part that stands open, and is left out by itself where there is no room. `text` is markdown, `title` is not."""

    title: str
    text: str
    rank: int

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Detail:
    """A part that a reader opens if wanted. `text` is markdown, `title` is not."""

    title: str
    text: str
    rank: int = DETAILS

    def __str__(self) -> str:
        # Between the blank lines GitHub reads markdown; the title's line is HTML.
        title = unlinked(html.escape(printable(self.title), quote=False))
        return f"<details><summary>{title}</summary>\n\n{self.text.strip()}\n\n</details>\n\n"


#: What a text is made of: words that always stand, and what is left out where there is no room for it.
Parts = Iterable[str | Part | Detail]


def bounded(parts: Parts) -> str:
    """The parts in order, at most 65,535 characters.

    Bare words come first: where these alone do not fit, the text ends before what is too long. Then as many of the
    others as there is room for, by rank, the earlier ones before the later. What was left out is said.
    """
    every = tuple(parts)
    room, whole = LONGEST - RESERVE, True
    kept = set[int]()
    for at, part in enumerate(every):
        if isinstance(part, str) and whole:
            whole = len(part) <= room
            room -= len(part) if whole else 0
            kept |= {at} if whole else set()
    others = [(part.rank, at, part) for at, part in enumerate(every) if not isinstance(part, str)]
    for _, at, part in sorted(others, key=lambda each: each[:2]):
        if whole and len(str(part)) <= room:
            room -= len(str(part))
            kept.add(at)
    left_out = [part.title for _, at, part in others if at not in kept]
    text = "".join(str(part) for at, part in enumerate(every) if at in kept)
    if not whole:
        return f"{text}\n\n{THE_REST}\n"
    return text + (_named(left_out) if left_out else "")


def _named(titles: list[str]) -> str:
    named = [escaped(clipped(printable(each), LONGEST_TITLE)) for each in titles[:NAMED]]
    more = f" and {len(titles) - NAMED} more" if len(titles) > NAMED else ""
    told = f"\nLeft out for length: {'; '.join(named)}{more}. The HTML page has all of it.\n"
    # Escaping makes a title several times as long, if it is made for that.
    return told if len(told) < RESERVE - MARK else f"\n{THE_REST}\n"
