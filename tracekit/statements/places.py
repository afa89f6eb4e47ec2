"""Where in a program something was called, in words."""

from collections.abc import Mapping

from tracekit.model.analysis import Place
from tracekit.numbers import counted

#: So many lines that wait are named.
MOST_LINES = 3


def made_at_words(place: Place | None, lines: Mapping[str, int], *, in_eager_code: bool) -> str:
    """`aten::copy_ in Head_0, in eager code at model.py:14 (2), model.py:12`; empty where nothing is known."""
    told = [place.words] if place else []
    if lines:
        named = [f"{line} ({n}x)" if n > 1 else line for line, n in list(lines.items())[:MOST_LINES]]
        more = f" and {counted(len(lines) - MOST_LINES, 'line')} more" if len(lines) > MOST_LINES else ""
        told.append(f"{'in eager code ' if in_eager_code else ''}at {', '.join(named)}{more}")
    return ", ".join(told)
