"""An account's figures as terminal, page and twin show them: in one unit, and changes as shares of the largest."""

import math

from msgspec import Struct

from tracekit.numbers import MISSING, figure_change, percent, scale_of
from tracekit.report.document import Account


class ShownRow(Struct, frozen=True):
    """`figures` are the sides' times and the change, of one side its time and share; `share` is the change as one of
    the largest, -1 to 1."""

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
    rows = []
    for row in account.rows:
        figures = ["" if us is None else f"{us / scale:,.{decimals}f}".replace("-", "−") for us in row.us]
        if is_compared:
            figures.append(figure_change((row.delta_us or 0.0) / scale, decimals))
        else:
            us = row.us[0] or 0.0
            # What ran at once is taken off, and no share of anything.
            figures.append(MISSING if us < 0 else percent(us / wholes[0], 0) if wholes[0] else "")
        rows.append(
            ShownRow(row.name, row.level, tuple(figures), (row.delta_us or 0.0) / longest, row.what, row.unjudged)
        )
    heads = (*account.labels, "change" if is_compared else "share")
    return ShownAccount(f"{account.title}, {unit}", heads, is_compared, tuple(rows))
