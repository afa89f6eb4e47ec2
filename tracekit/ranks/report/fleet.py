"""What many ranks at once are told by: stragglers, groups, distributions, and own time step by step."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import TypeVar

from tracekit.numbers import MISSING, duration, percent, rounded
from tracekit.ranks.job_figures import Ranks
from tracekit.ranks.report import words
from tracekit.ranks.report.explorers import MOST_PERCENT, coloured
from tracekit.ranks.report.tables import ACCOUNT, account_heads
from tracekit.ranks.statements.words import ranges
from tracekit.report.document import HeatCell, HeatMap, Table, columns, filled_table

T = TypeVar("T")
QUANTILES = {"min": 0, "p1": 0.01, "p25": 0.25, "median": 0.5, "p75": 0.75, "p99": 0.99, "max": 1}
#: Columns of steps; shares that are coloured, and the strongest.
MOST_COLUMNS, LEAST_LONGER, MOST_LONGER = 24, 0.02, 0.2


def straggler_table(told: Ranks, most: int) -> Table | None:
    """What is slower than its peers beyond chance, with its 95 % interval."""
    rows = []
    for each in told.stragglers[:most]:
        name = f"rank {each.ranks[0]}" if each.kind == "rank" else f"{each.kind} {each.name or MISSING}"
        cause = words.causes_told(each.causes, 1) if each.causes else MISSING
        if each.kind == "link":
            name = f"link of {each.name or MISSING}"
            cause = f"{each.busbw_gbps:,.0f} GB/s, usually {each.usual_gbps:,.0f}"
        interval = f"{percent(each.ci95[0])} to {percent(each.ci95[1])}"
        rows.append(
            (f" {name}", percent(each.excess), interval, duration(each.lost_us), duration(each.waited_us), cause)
        )
    heads = columns("Slow", figures=("longer by", "95 % CI", "loses", "others waited"))
    return filled_table("", (*heads, *columns("because of")), rows)


def axis_table(told: Ranks) -> Table | None:
    """Of each way in which ranks are grouped the groups with most and least own time."""
    rows = []
    for axis in dict.fromkeys(each.axis for each in told.groups):
        some = [each for each in told.groups if each.axis == axis and each.excess is not None]
        if not some:
            continue
        slow, fast = (pick(some, key=lambda each: each.excess or 0.0) for pick in (max, min))
        ranks = f"{len(some):,} of {max(len(each.ranks) for each in some):,} ranks"
        rows.append((f" {axis}", ranks, *(f"{each.name}: {_signed(each.excess)}" for each in (slow, fast))))
    return filled_table("", columns("Groups", "", "most own time", "least own time"), rows)


def group_table(told: Ranks, axis: str, most: int) -> Table | None:
    """The groups of one axis, those that differ most where not all find room."""
    every = [each for each in told.groups if each.axis == axis]
    chosen = {each.name for each in sorted(every, key=lambda each: -abs(each.excess or 0.0))[:most]}
    rows = (
        (
            each.name,
            ranges(each.ranks, 3),
            *map(duration, (each.span_us, each.compute_us, each.exposed_transfer_us)),
            *map(duration, (each.exposed_waiting_us, each.idle_us)),
            _signed(each.excess),
        )
        for each in every
        if each.name in chosen
    )
    figures = ("span", "compute", "exposed transfer", "exposed waiting", "idle", "longer")
    left = f" {len(every) - most:,} that differ less are left out." if len(every) > most else ""
    # Said once, below the last of the tables.
    note = words.GROUPS_NOTE if axis == told.groups[-1].axis else ""
    return filled_table(f"By {axis}", columns(axis, "ranks", figures=figures), rows, note + left)


def distribution_table(told: Ranks) -> Table:
    """How each part of the account is distributed over all ranks."""
    rows = []
    for head in account_heads(told):
        known = sorted(us for use in told.ranks if (us := ACCOUNT[head](use)) is not None)
        if known:
            rows.append((head, *(duration(known[round(share * (len(known) - 1))]) for share in QUANTILES.values())))
    return Table(f"Percentiles over {len(told.ranks):,} ranks", columns("", figures=QUANTILES), tuple(rows))


def _signed(share: float | None) -> str:
    return MISSING if share is None else f"{rounded(share * 100, 1, signed=True)} %"


def step_map(told: Ranks) -> HeatMap | None:
    """By how much own time is longer than the peers', step by step: stragglers, and the others by neighbours."""
    if not told.step_rows:
        return None
    bins = [each for each in in_bins(told.by_step, MOST_COLUMNS) if each]
    heads = [str(each[0].step) if len(each) == 1 else f"{each[0].step} to {each[-1].step}" for each in bins]
    strongest = f"{percent(MOST_LONGER, 0)} longer, or more"
    # Narrow: their head says what they are.
    names = (row.name.removeprefix("ranks ").removeprefix("rank ") for row in told.step_rows)
    cells = (tuple(map(_step_cell, in_bins(row.excess, MOST_COLUMNS))) for row in told.step_rows)
    return HeatMap(
        caption="Own time beyond peers', by step, %",
        columns=tuple(heads),
        rows=tuple(zip(names, cells, strict=True)),
        keys=(("loss", strongest, MOST_PERCENT), ("even", "as others", 0)),
        note=words.STEPS_NOTE,
        head="ranks",
    )


def _step_cell(shares: Sequence[float | None]) -> HeatCell:
    known = [share for share in shares if share is not None]
    if not known:
        return HeatCell(MISSING, "missing")
    share = fmean(known)
    text = rounded(share * 100, 1)
    return HeatCell(text, "even") if share < LEAST_LONGER else coloured(text, min(share / MOST_LONGER, 1.0))


def in_bins(values: Sequence[T], most: int) -> list[Sequence[T]]:
    """Neighbours together, in at most so many bins."""
    parts = min(most, len(values)) or 1
    edges = [round(at * len(values) / parts) for at in range(parts + 1)]
    return [values[a:b] for a, b in pairwise(edges)]
