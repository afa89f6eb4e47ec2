"""What to try, as terminal, page and twin part it: what makes calls faster, and what makes compiling shorter."""

from tracekit.report.document import Advice, Overview
from tracekit.report.words.short import FASTER, NOTHING_FASTER, SHORTER_START, TRY


def advised(overview: Overview) -> tuple[tuple[str, tuple[Advice, ...]], ...]:
    """Headings and what stands below them; below the one that says that nothing is known there is nothing."""
    faster = tuple(each for each in overview.advice if not each.starts)
    starts = tuple(each for each in overview.advice if each.starts)
    found = []
    if faster:
        found.append((FASTER if overview.nothing_faster else TRY, faster))
    elif starts and overview.nothing_faster:
        found.append((f"{FASTER}: {NOTHING_FASTER}", ()))
    return (*found, *([(SHORTER_START, starts)] if starts else []))
