"""An account's figures as terminal, page and twin show them: in one unit, and changes as shares of the largest."""

import math

from msgspec import Struct

from tracekit.numbers import MISSING, decimals_within, figure_change, percent, rounded, scale_of
from tracekit.report.document import Account, AccountRow

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
    wholes = [
        math.fsum(row.us[at] or 0.0 for row in account.rows if row.level == 0) for at in range(len(account.labels))
    ]
    unit, scale, decimals = scale_of(max(wholes))
    longest = max((abs(row.delta_us or 0.0) for row in account.rows), default=0.0) or 1.0
    is_compared = len(account.labels) > 1
    has_bounds = any(row.within_us is not None for row in account.rows)
    rows = []
    for row in account.rows:
        digits = [decimals_within(half / scale, decimals) for half in row.half_us] or [decimals] * (len(row.us) + 1)
        figures = [
            "" if us is None else _filled(rounded(us / scale, each), decimals - each)
            for us, each in zip(row.us, digits, strict=False)
        ]
        if is_compared:
            change = figure_change((row.delta_us or 0.0) / scale, digits[-1])
            figures.append(change if change == "0" else _filled(change, decimals - digits[-1]))
            figures += [_bound(row, digits[-1], scale, decimals)] if has_bounds else []
        else:
            us = row.us[0] or 0.0
            # What ran at once is taken off, and no share of anything.
            figures.append(MISSING if us < 0 else percent(us / wholes[0], 0) if wholes[0] else "")
        # What may be none is drawn as none.
        delta_us = row.delta_us or 0.0
        share = delta_us / longest if row.within_us is None or abs(delta_us) >= row.within_us else 0.0
        rows.append(ShownRow(row.name, row.level, tuple(figures), share, row.what, row.unjudged))
    heads = (*account.labels, "change" if is_compared else "share", *(["±"] if has_bounds else []))
    return ShownAccount(f"{account.title}, {unit}", heads, is_compared, tuple(rows))


def _filled(figure: str, lacking: int) -> str:
    """As wide as if it had so many decimals more, and the point where it has none."""
    return figure + NO_DIGIT * (lacking + (lacking > 0 and "." not in figure))


def _bound(row: AccountRow, digits: int, scale: float, decimals: int) -> str:
    """Empty where it says nothing: it rounds to nothing, or is wider than what changed."""
    within_us = row.within_us or 0.0
    text = f"±{within_us / scale:,.{digits}f}"
    says_nothing = not text.strip("±0.") or within_us > max((us or 0.0 for us in row.us), default=0.0)
    return "" if says_nothing else _filled(text, decimals - digits)
