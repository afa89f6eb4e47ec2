"""Many ranks: how each spent its time, who waited for whom, and in which collectives."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from statistics import median

from tracekit.names import clipped_within
from tracekit.numbers import MISSING, duration, in_unit, scale_of, size
from tracekit.ranks.fleets.collectives import class_of
from tracekit.ranks.job_figures import CollectiveUse, Ranks, RankUse
from tracekit.ranks.report import words
from tracekit.ranks.statements.words import WHY_UNMATCHED, cause_name
from tracekit.report.document import Table, columns, filled_table

UNMATCHED = words.PARTS["unmatched"]
#: Of the span: less is rounding.
LEAST_UNMATCHED = 0.0005
#: Characters of a place.
PLACE = 32
NO_CAUSE = "no cause found"
#: More than ranks wait for each other: those that are slow come first.
SLOW_FIRST_US = 1e15
#: Rows of tables of detail, and of kernels that ranks run unequally often.
MOST_DETAILS, MOST_UNEVEN = 60, 20


def foremost(told: Ranks, most: int) -> tuple[tuple[RankUse, ...], tuple[RankUse, ...]]:
    """The ranks that are slow, then those that lose most to communication or were waited for most; and the others. Both
    in order."""
    weights = defaultdict(float, {use.rank: use.communication_cost_us for use in told.ranks})
    for place, straggler in enumerate(reversed(told.stragglers)):
        if straggler.kind != "link":
            weights |= dict.fromkeys(straggler.ranks[:1], SLOW_FIRST_US * (1 + place))
    for each in told.waits:
        weights[each.late] += each.us
    numbers = {*sorted((each.rank for each in told.ranks), key=lambda rank: -weights[rank])[:most]}
    others = tuple(use for use in told.ranks if use.rank not in numbers)
    return tuple(use for use in told.ranks if use.rank in numbers), others


def account_table(told: Ranks, most: int) -> Table:
    """A row a rank: compute, exposed communication and idle time add up to its span. Where there are more than `most`,
    those that lose or were waited for most, and the median of the others. Exposed collectives that match no other
    rank's are neither transfer nor waiting: they have a column, where there are any."""
    # A row for the median of one rank would only hide its number.
    shown, others = (told.ranks, ()) if len(told.ranks) == most + 1 else foremost(told, most)
    names = [f" rank {use.rank}" for use in shown] + ([f" median of {len(others):,} others"] if others else [])
    account = {
        head: [*map(figure, shown), *([middle(map(figure, others))] if others else [])]
        for head, figure in ACCOUNT.items()
    }
    if not any(account[UNMATCHED]):
        del account[UNMATCHED]
    unit, scale, decimals = scale_of(max(use.span_us for use in told.ranks))
    texts = ([in_unit(us, scale, decimals) for us in some] for some in account.values())
    return Table("", columns(f"Time, {unit}", figures=account), tuple(zip(names, *texts, strict=True)))


def middle(figures: Iterable[float | None]) -> float | None:
    """The median of those that are known; None where none is."""
    known = [figure for figure in figures if figure is not None]
    return median(known) if known else None


def unmatched_us(use: RankUse) -> float:
    """Exposed communication that is told to be neither transfer nor waiting."""
    left = use.exposed_us - (use.exposed_transfer_us or 0.0) - (use.exposed_waiting_us or 0.0)
    return left if left > LEAST_UNMATCHED * use.span_us else 0.0


#: What a rank's span consists of, up to idle time, and what is within these; by heads of columns.
ACCOUNT: dict[str, Callable[[RankUse], float | None]] = {
    "span": lambda use: use.span_us,
    "compute": lambda use: use.compute_us,
    "exposed transfer": lambda use: use.exposed_transfer_us,
    "exposed waiting": lambda use: use.exposed_waiting_us,
    UNMATCHED: unmatched_us,
    "idle": lambda use: use.idle_us,
    "overlap price": lambda use: use.overlap_price_us,
    "waiting": lambda use: use.waiting_us,
}


def account_heads(told: Ranks) -> tuple[str, ...]:
    """Those of the account that some rank has something in."""
    unmatched = any(map(unmatched_us, told.ranks))
    return tuple(head for head in ACCOUNT if head != UNMATCHED or unmatched)


def late_table(told: Ranks, most: int) -> Table | None:
    """The ranks that were waited for, and why they were late."""
    some = told.late[:most]
    rows = (
        (
            f" rank {each.rank}",
            duration(each.waited_for_us),
            words.causes_told(each.causes, 2) or NO_CAUSE,
            clipped_within(each.where[0], PLACE) if each.where else MISSING,
        )
        for each in some
    )
    heads = columns("Late", "others waited", "because of", "mostly at")
    # Summaries hold no places.
    shown = len(heads) if any(each.where for each in some) else -1
    return filled_table("", heads[:shown], (row[:shown] for row in rows))


def collective_table(told: Ranks, most: int) -> Table | None:
    """A row for each name, type and size of collectives, whatever the group, those with most time first; figures of
    one collective are medians."""
    kinds: dict[tuple[object, ...], list[CollectiveUse]] = defaultdict(list)
    for each in told.collectives:
        kinds[each.name, each.dtype, each.bytes].append(each)
    rows: list[tuple[float, tuple[str, ...]]] = []
    for some in kinds.values():
        transfer_us, waiting_us = sum(each.transfer_us or 0.0 for each in some), sum(map(waited_us, some))
        busbw, times_last = middle(each.busbw_gbps for each in some), Counter[int]()
        for last in (last for each in some for last in each.late_ranks):
            times_last[last.rank] += last.times
        kind = some[0].kind if len(some) == 1 else class_of(waiting_us, transfer_us)
        row = (
            f" {collective_name(some[0])}",
            f"{sum(each.count for each in some):,}",
            size(some[0].bytes),
            duration(transfer_us),
            duration(waiting_us),
            f"{busbw:,.1f}" if busbw is not None else MISSING,
            duration(middle(each.arrival_spread_us for each in some)),
            *([f"rank {rank} ({times})" for rank, times in times_last.most_common(1)] or [MISSING]),
            words.MOSTLY.get(kind, kind),
        )
        rows.append((transfer_us + waiting_us, row))
    rows.sort(key=lambda each: -each[0])
    heads = columns("Collectives", figures=("count", "bytes", "transfer", "waiting", "GB/s", words.LATE_BY))
    return filled_table("", (*heads, *columns(words.CAME_LAST, "mostly")), (row for _, row in rows[:most]))


def collective_name(each: CollectiveUse) -> str:
    return f"{each.name}{f' {words.DTYPES.get(each.dtype, each.dtype)}' if each.dtype else ''}"


def waited_us(each: CollectiveUse) -> float:
    """By all ranks together."""
    return sum(one.us for one in each.waiting_us)


def idle_table(told: Ranks) -> Table | None:
    causes = list(dict.fromkeys(share.cause for each in told.ranks for share in each.idle_causes))
    spent = {each.rank: {share.cause: share.us for share in each.idle_causes} for each in told.ranks}
    rows = ((f"rank {rank}", *(duration(own.get(cause)) for cause in causes)) for rank, own in spent.items())
    return filled_table("Idle time by cause", columns("", figures=map(cause_name, causes)), rows)


def uneven_table(told: Ranks) -> Table | None:
    rows = (
        (f"rank {each.rank}", each.name, f"{each.count:,}", f"{each.usual_count:,.0f}", duration(each.more_us))
        for each in told.uneven[:MOST_UNEVEN]
    )
    heads = columns("", "kernel", figures=("runs", "usually", "more"))
    return filled_table("Kernels that ranks run unequally often", heads, rows)


def unmatched_table(told: Ranks) -> Table | None:
    rows = (
        (f"rank {each.rank}", WHY_UNMATCHED[each.reason], f"{each.count:,}", duration(each.total_us))
        for each in told.unmatched[:MOST_DETAILS]
    )
    heads = columns("", "why", figures=("collectives", "time"))
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
    heads = columns("collective", "group", "ranks", "matched by", figures=("count", "algorithm GB/s"))
    return filled_table("How collectives were matched", (*heads, *columns("waiting by rank")), rows)
