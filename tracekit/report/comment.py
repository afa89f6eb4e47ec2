"""What of a markdown text does one comment hold? Details are folded, and left out first."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

from tracekit.report.escaping import escaped
from tracekit.report.names import clipped, printable

#: What GitHub takes in one comment.
LONGEST = 65_536
#: Kept for the sentence that says what was left out.
RESERVE = 2_500
#: So many details are named in it, with so much of their titles.
NAMED = 12
LONGEST_TITLE = 80

THE_REST = "The rest is left out for its length; the HTML page has all of it."


@dataclass(frozen=True, slots=True)
class Detail:
    """A part that a reader opens if wanted. `text` is markdown, `title` is not."""

    title: str
    text: str

    def __str__(self) -> str:
        # Between the blank lines GitHub reads markdown; the title's line is HTML.
        title = html.escape(printable(self.title), quote=False)
        return f"<details><summary>{title}</summary>\n\n{self.text.strip()}\n\n</details>\n\n"


def bounded(parts: Iterable[str | Detail]) -> str:
    """The parts in order, at most 65,535 characters.

    What is no detail comes first: where that alone does not fit, the text ends before what is too long. Then as many
    details as there is room for, the earlier ones before the later. What was left out is said.
    """
    every = tuple(parts)
    room, whole = LONGEST - RESERVE, True
    kept = set[int]()
    for at, part in enumerate(every):
        if isinstance(part, str) and whole:
            whole = len(part) <= room
            room -= len(part) if whole else 0
            kept |= {at} if whole else set()
    for at, part in enumerate(every):
        if isinstance(part, Detail) and whole and len(str(part)) <= room:
            room -= len(str(part))
            kept.add(at)
    left_out = [part.title for at, part in enumerate(every) if isinstance(part, Detail) and at not in kept]
    text = "".join(str(part) for at, part in enumerate(every) if at in kept)
    if not whole:
        return f"{text}\n\n{THE_REST}\n"
    return text + (_named(left_out) if left_out else "")


def _named(titles: list[str]) -> str:
    named = [escaped(clipped(printable(each), LONGEST_TITLE)) for each in titles[:NAMED]]
    more = f" and {len(titles) - NAMED} more" if len(titles) > NAMED else ""
    return f"\nLeft out for length: {'; '.join(named)}{more}. The HTML page has all of it.\n"
