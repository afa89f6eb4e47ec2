"""Many ranks: how each spent its time, who waited for whom, and in which collectives."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from msgspec.structs import replace

from tracekit.names import clipped_within
from tracekit.numbers import MISSING, duration, scale_of, size
from tracekit.ranks.fleets.collectives import class_of
from tracekit.ranks.job_figures import CollectiveUse, OneCollective, Ranks, RankTimes, RankUse
from tracekit.ranks.report import words
from tracekit.ranks.statements.words import WHY_UNMATCHED, cause_name
from tracekit.report.document import (
    Table,
    columns,
    filled_table,
)

UNMATCHED, PRICE = words.PARTS["unmatched"], "overlap price"
ACCOUNT = (
    *("span", "compute", "exposed transfer", "exposed waiting", UNMATCHED, "idle"),
    *(PRICE, "waiting", words.CAME_LAST),
)
#: Of the span: less is rounding.
LEAST_UNMATCHED = 0.0005
#: Characters of a place.
PLACE = 32
NO_CAUSE = "no cause found"
#: Rows and columns of the matrix.
MOST_WAITERS, MOST_LATES = 16, 8
#: More than ranks wait for each other: those that are slow come first.
SLOW_FIRST_US = 1e15
#: Rows of tables of detail.
MOST_DETAILS = 60
#: What is of one collective, not a sum.
OF_ONE = ("arrival_spread_us", "algbw_gbps", "busbw_gbps")


def foremost(told: Ranks, most: int) -> tuple[RankUse, ...]:
    """The ranks that are slow, then those that lose most to communication or were waited for most, in order."""
    weights = defaultdict(float, {use.rank: use.communication_cost_us for use in told.ranks})
    for place, straggler in enumerate(reversed(told.stragglers)):
        if straggler.kind != "link":
            weights |= dict.fromkeys(straggler.ranks[:1], SLOW_FIRST_US * (1 + place))
    for each in told.waits:
        weights[each.late] += each.us
    numbers = sorted((each.rank for each in told.ranks), key=lambda rank: -weights[rank])[:most]
    return tuple(use for use in told.ranks if use.rank in numbers)


def account_table(told: Ranks, most: int) -> Table:
    """A row a rank: compute, exposed communication and idle time add up to its span. Where there are more than `most`,
    those that lose or were waited for most, and the median of the others. Exposed collectives that match no other
    rank's are neither transfer nor waiting: they have a column, where there are any."""
    # A row for the median of one rank would only hide its number.
    shown = told.ranks if len(told.ranks) == most + 1 else foremost(told, most)
    taken = {use.rank for use in shown}
    others = [use for use in told.ranks if use.rank not in taken]
    heads = account_heads(told)[:-1]
    if not any(map(unmatched_us, shown)) and not (others and median(map(unmatched_us, others))):
        heads = tuple(head for head in heads if head != UNMATCHED)
    unit, scale, decimals = scale_of(max(use.span_us for use in told.ranks))

    def written(us: float | None) -> str:
        return MISSING if us is None else f"{us / scale:,.{decimals}f}"

    def figures(use: RankUse) -> tuple[float | None, ...]:
        return account_figures(use, heads)

    rows = [(f" rank {use.rank}", *map(written, figures(use))) for use in shown]
    if others:
        known = ([us for us in each if us is not None] for each in zip(*map(figures, others), strict=True))
        medians = (median(each) if each else None for each in known)
        rows.append((f" median of {len(others):,} others", *map(written, medians)))
    return Table("", columns(f"Time, {unit}", figures=heads), tuple(rows))


def account_heads(told: Ranks) -> tuple[str, ...]:
    """Those of the account that some rank has something in."""
    unmatched = any(map(unmatched_us, told.ranks))
    return tuple(head for head in ACCOUNT if head != UNMATCHED or unmatched)


def account_note(heads: Sequence[str]) -> str:
    """What adds up, and what is within the others."""
    parts, within = (" + ".join(heads[1 : heads.index("idle") + 1]), heads[heads.index("idle") + 1 : -1])
    are = f"“{within[0]}” is" if len(within) == 1 else f"{' and '.join(f'“{each}”' for each in within)} are"
    return f"span = {parts}. {are} within these; {words.ACCOUNT_NOTE}"


def account_figures(use: RankUse, heads: tuple[str, ...]) -> tuple[float | None, ...]:
    """Those under these heads, the last arrivals not among them."""
    every = (
        use.span_us,
        use.compute_us,
        use.exposed_transfer_us,
        use.exposed_waiting_us,
        unmatched_us(use),
        use.idle_us,
        use.overlap_price_us,
        use.waiting_us,
    )
    return tuple(us for head, us in zip(ACCOUNT, every, strict=False) if head in heads)


def unmatched_us(use: RankUse) -> float:
    """Exposed communication that is told to be neither transfer nor waiting."""
    left = use.exposed_us - (use.exposed_transfer_us or 0.0) - (use.exposed_waiting_us or 0.0)
    return left if left > LEAST_UNMATCHED * use.span_us else 0.0


def late_table(told: Ranks, most: int) -> Table | None:
    """The ranks that were waited for, and why they were late."""
    rows = (
        (
            f" rank {each.rank}",
            duration(each.waited_for_us),
            words.causes_told(each.causes, 2) or NO_CAUSE,
            clipped_within(each.where[0], PLACE) if each.where else MISSING,
        )
        for each in told.late[:most]
    )
    heads = columns("Late", "others waited", "because of", "mostly at")
    if any(each.where for each in told.late[:most]):
        return filled_table("", heads, rows)
    # Summaries hold no places.
    return filled_table("", heads[:-1], (row[:-1] for row in rows))


def collective_table(told: Ranks, most: int) -> Table | None:
    """The kinds of collectives of all groups together, those with most time first."""
    rows = (
        (
            f" {collective_name(each)}",
            f"{each.count:,}",
            size(each.bytes),
            duration(each.transfer_us),
            duration(sum(one.us for one in each.waiting_us)),
            f"{each.busbw_gbps:,.1f}" if each.busbw_gbps is not None else MISSING,
            duration(each.arrival_spread_us),
            f"rank {each.late_ranks[0].rank} ({each.late_ranks[0].times})" if each.late_ranks else MISSING,
            words.MOSTLY[each.kind],
        )
        for each in _over_groups(told.collectives)[:most]
    )
    heads = columns("Collectives", figures=("count", "bytes", "transfer", "waiting", "GB/s", words.LATE_BY))
    return filled_table("", (*heads, *columns(words.CAME_LAST, "mostly")), rows)


def _over_groups(collectives: Sequence[CollectiveUse]) -> list[CollectiveUse]:
    """A row for each name, type and size, whatever the group; figures of one collective are medians."""
    kinds: dict[tuple[object, ...], list[CollectiveUse]] = defaultdict(list)
    for each in collectives:
        kinds[each.name, each.dtype, each.bytes].append(each)
    found = []
    for some in kinds.values():
        known = {name: [us for each in some if (us := getattr(each, name)) is not None] for name in OF_ONE}
        middle: dict[str, Any] = {name: median(values) if values else None for name, values in known.items()}
        whole = sum((each.transfer_us or 0.0) for each in some)
        waits = [one for each in some for one in each.waiting_us]
        often = [one for each in some for one in each.late_ranks]
        late: dict[int, int] = defaultdict(int)
        for rank in often:
            late[rank.rank] += rank.times
        told_kind = class_of(sum(one.us for one in waits), whole)
        found.append(
            replace(
                some[0],
                count=sum(each.count for each in some),
                transfer_us=whole,
                waiting_us=tuple(waits),
                late_ranks=tuple(sorted((RankTimes(*one) for one in late.items()), key=lambda one: -one.times)),
                kind=some[0].kind if len(some) == 1 else told_kind,
                **middle,
            )
        )
    return sorted(found, key=lambda each: -((each.transfer_us or 0.0) + sum(one.us for one in each.waiting_us)))


def collective_name(each: CollectiveUse) -> str:
    return f"{each.name}{f' {words.DTYPES.get(each.dtype, each.dtype)}' if each.dtype else ''}"


def matrix_of(told: Ranks, rows: int, heads: int) -> tuple[list[str], list[tuple[str, list[float], float]]] | None:
    """Names of columns; of each row its name, the means of what it is of, and their sum."""
    cells = {(each.rank, each.late): each.us for each in told.waits}
    if not cells:
        return None
    waited: dict[int, float] = defaultdict(float)
    waits: dict[int, float] = dict.fromkeys((use.rank for use in told.ranks), 0.0)
    for (rank, late), us in cells.items():
        waited[late] += us
        waits[rank] += us
    lates = sorted(sorted(waited, key=lambda late: (-waited[late], late))[:heads])
    others = set(waited) - set(lates)
    for_others: dict[int, float] = defaultdict(float)
    for (rank, late), us in cells.items():
        if late in others:
            for_others[rank] += us
    first = sorted(sorted(waits, key=lambda rank: (-waits[rank], rank))[:rows])
    rest = sorted(set(waits) - set(first))

    def line(name: str, some: list[int]) -> tuple[str, list[float], float]:
        means = [fmean(cells.get((rank, late), 0.0) for rank in some) for late in lates]
        if others:
            means.append(fmean(for_others[rank] for rank in some))
        return name, means, fmean(waits[rank] for rank in some)

    lines = [line(f"rank {rank}", [rank]) for rank in first]
    if rest:
        lines.append(line(f"mean of {len(rest):,} others", rest))
    heads_ = [f"rank {late}" for late in lates] + ([f"{len(others):,} others"] if others else [])
    return heads_, lines


def last_words(each: OneCollective) -> str:
    return MISSING if each.last_rank is None else f"rank {each.last_rank}"


def because_heads(told: Ranks) -> tuple[str, ...]:
    """Of why the last rank came late; none where nobody knows of any."""
    return ("late because of",) if any(each.causes for each in told.worst) else ()


def late_because(told: Ranks, each: OneCollective) -> tuple[str, ...]:
    """What stands below it."""
    return tuple(words.causes_told(each.causes, 1) or NO_CAUSE for _ in because_heads(told))


def idle_table(told: Ranks) -> Table | None:
    causes = list(dict.fromkeys(share.cause for each in told.ranks for share in each.idle_causes))
    spent = {each.rank: {share.cause: share.us for share in each.idle_causes} for each in told.ranks}
    rows = ((f"rank {rank}", *(duration(own.get(cause)) for cause in causes)) for rank, own in spent.items())
    return filled_table("Idle time by cause", columns("", figures=map(cause_name, causes)), rows)


def uneven_table(told: Ranks, most: int = 20) -> Table | None:
    rows = (
        (
            f"rank {each.rank}",
            each.name,
            f"{each.count:,}",
            f"{each.usual_count:,.0f}",
            duration(each.more_us),
        )
        for each in told.uneven[:most]
    )
    heads = (*columns("", "kernel"), *columns(figures=("runs", "usually", "more")))
    return filled_table("Kernels that ranks run unequally often", heads, rows)


def unmatched_table(told: Ranks) -> Table | None:
    rows = (
        (f"rank {each.rank}", WHY_UNMATCHED[each.reason], f"{each.count:,}", duration(each.total_us))
        for each in told.unmatched[:MOST_DETAILS]
    )
    heads = (*columns("", "why"), *columns(figures=("collectives", "time")))
    return filled_table("Collectives that match no other rank's", heads, rows)


def matching_table(told: Ranks) -> Table | None:
    rows = (
        (
            each.name,
            each.group or MISSING,
            ", ".join(map(str, each.ranks)) if len(each.ranks) <= 8 else f"{len(each.ranks)} ranks",
            words.MATCHED[each.matched_by],
            f"{each.count:,}",
            f"{each.algbw_gbps:,.1f}" if each.algbw_gbps is not None else MISSING,
            ", ".join(f"{one.rank}: {duration(one.us)}" for one in each.waiting_us[:8]),
        )
        for each in told.collectives[:MOST_DETAILS]
    )
    heads = (*columns("collective", "group", "ranks", "matched by"), *columns(figures=("count", "algorithm GB/s")))
    return filled_table("How collectives were matched", (*heads, *columns("waiting by rank")), rows)


def spread_words(told: Ranks) -> str:
    """How far the clocks can be trusted."""
    apart = told.clock.uncertainty_us
    return words.CLOCKS[told.clock.basis] + (f", ends {duration(apart)} apart (median)" if apart is not None else "")
