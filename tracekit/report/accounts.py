"""What terminal, page and twin show alike: an account in one unit, and what to try by what it makes shorter."""

import math

from msgspec import Struct

from tracekit.numbers import MISSING, decimals_within, figure_change, percent, rounded, scale_of
from tracekit.report.document import Account, Advice, Overview
from tracekit.report.words.short import FASTER, NOTHING_FASTER, SHORTER_START, TRY

#: As wide as a digit, and kept by a page: figures with fewer decimals stand below each other's points.
NO_DIGIT = "\N{FIGURE SPACE}"


class ShownRow(Struct, frozen=True):
    """`figures` are the sides' times, the change and what that is within, of one side its time and share; `share` is
    the change as one of the largest, -1 to 1."""

    name: str
    level: int
    figures: tuple[str, ...]
    share: float
    what: str
    unjudged: bool


class ShownAccount(Struct, frozen=True):
    """`heads` are those of the figures."""

    title: str
    heads: tuple[str, ...]
    is_compared: bool
    rows: tuple[ShownRow, ...]


def shown_account(account: Account) -> ShownAccount:
    wholes = [math.fsum(row.us[at] for row in account.rows if row.level == 0) for at in range(len(account.labels))]
    unit, scale, decimals = scale_of(max(wholes))
    longest = max((abs(row.delta_us) for row in account.rows), default=0.0) or 1.0
    is_compared = len(account.labels) > 1
    has_bounds = any(row.within_us is not None for row in account.rows)
    rows = []
    for row in account.rows:
        digits = [decimals_within(half / scale, decimals) for half in row.half_us] or [decimals] * (len(row.us) + 1)
        figures = [
            _filled(rounded(us / scale, each), decimals - each) for us, each in zip(row.us, digits, strict=False)
        ]
        within_us = row.within_us or 0.0
        if is_compared:
            change = figure_change(row.delta_us / scale, digits[-1])
            figures.append(change if change == "0" else _filled(change, decimals - digits[-1]))
        else:
            # What ran at once is taken off, and no share of anything.
            figures.append(MISSING if row.us[0] < 0 else percent(row.us[0] / wholes[0], 0) if wholes[0] else "")
        if is_compared and has_bounds:
            bound = f"±{within_us / scale:,.{digits[-1]}f}"
            # It rounds to nothing, or is wider than what changed.
            says_nothing = not bound.strip("±0.") or within_us > max(*row.us, 0.0)
            figures.append("" if says_nothing else _filled(bound, decimals - digits[-1]))
        # What may be none, or is shown to be, is drawn as none.
        is_none = abs(row.delta_us) < within_us or (is_compared and figures[len(row.us)] == "0")
        share = 0.0 if is_none else row.delta_us / longest
        rows.append(ShownRow(row.name, row.level, tuple(figures), share, row.what, row.unjudged))
    heads = (*account.labels, "change" if is_compared else "share", *(["±"] if has_bounds else []))
    return ShownAccount(f"{account.title}, {unit}", heads, is_compared, tuple(rows))


def _filled(figure: str, lacking: int) -> str:
    """As wide as if it had so many decimals more, and the point where it has none."""
    return figure + NO_DIGIT * (lacking + (lacking > 0 and "." not in figure))


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
