"""Many ranks: how each spent its time, who waited for whom, and in which collectives."""

from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean, median

from tracekit.model.ranks import CollectiveUse, LateRank, OneCollective, Ranks, RankUse, WaitedFor
from tracekit.names import clipped_within, printable
from tracekit.numbers import MISSING, counted, duration, scale_of, size
from tracekit.report.document import (
    Account,
    AccountRow,
    Bar,
    Explorer,
    ExplorerRow,
    Figure,
    HeatCell,
    HeatMap,
    Table,
    columns,
    filled_table,
)
from tracekit.report.words import ranks as words

ACCOUNT = ("span", "compute", "exposed transfer", "exposed waiting", "idle", "waiting", "overlap price", "last")
#: Characters of a place.
PLACE = 32
NO_CAUSE = "no cause found"
#: What a rank's span consists of; less than the second was lost in rounding.
SEGMENTS, LEAST_PART_US = ("compute", "transfer", "waiting", "communication", "idle"), 0.01
LATE, LAST = "late", "last most often"
#: Ranks in the page's table; ranks in a row of words, and waits by rank.
MOST_ROWS, MOST_NAMED, MOST_LISTED = 500, 4, 128
#: Rows and columns of the matrix, and how strong its colours are (tests/report/test_colours.py).
MOST_WAITERS, MOST_LATES = 16, 8
LEAST_PERCENT, MOST_PERCENT = 6, 42
#: Causes of one rank's lateness, and the share of it that one has; that all others have together.
MOST_CAUSES, LEAST_CAUSE, LEAST_REST = 4, 0.02, 0.005


def foremost(told: Ranks, most: int) -> tuple[RankUse, ...]:
    """The ranks that waited or were waited for most, in order."""
    waited: dict[int, float] = defaultdict(float)
    for each in told.waits:
        waited[each.rank] += each.us
        waited[each.late] += each.us
    numbers = sorted((each.rank for each in told.ranks), key=lambda rank: -waited[rank])[:most]
    return tuple(use for use in told.ranks if use.rank in numbers)


def account_table(told: Ranks, most: int) -> Table:
    """A row a rank: compute, exposed communication and idle time add up to its span. Where there are more than `most`,
    those that waited or were waited for most, and the median of the others."""
    shown = foremost(told, most)
    others = [use for use in told.ranks if use not in shown]
    unit, scale, decimals = scale_of(max(use.span_us for use in told.ranks))

    def written(us: float | None) -> str:
        return MISSING if us is None else f"{us / scale:,.{decimals}f}"

    rows = [(f" rank {use.rank}", *map(written, _figures(use)), str(use.last_arrivals)) for use in shown]
    if others:
        known = ([us for us in each if us is not None] for each in zip(*map(_figures, others), strict=True))
        medians = (median(each) if each else None for each in known)
        last = f"{median(use.last_arrivals for use in others):,.0f}"
        rows.append((f" median of {len(others)} others", *map(written, medians), last))
    return Table("", columns(f"Time, {unit}", figures=ACCOUNT), tuple(rows))


def span_bars(told: Ranks, most: int) -> tuple[Bar, ...]:
    """What each rank's span consists of; of more than `most` those that waited or were waited for most, and the mean of
    the others. Who is late is marked, or else who is the last most often."""
    shown = foremost(told, most if len(told.ranks) <= most else most - 1)
    others = [use for use in told.ranks if use not in shown]
    parts = {use.rank: _parts(use) for use in told.ranks}
    occur = [kind for kind in SEGMENTS if any(parts[rank][kind] for rank in parts)]
    late = {each.rank for each in told.findings if each.code == "late_rank"}
    often = max(told.ranks, key=lambda use: use.last_arrivals)

    def mark(use: RankUse) -> str:
        if use.rank in late:
            return LATE
        return LAST if not late and use is often and use.last_arrivals and len(told.ranks) > 1 else ""

    bars = [
        Bar(f"rank {use.rank}", use.span_us, tuple((kind, parts[use.rank][kind]) for kind in occur), mark(use))
        for use in shown
    ]
    if others:
        means = {kind: fmean(parts[use.rank][kind] for use in others) for kind in occur}
        whole = fmean(use.span_us for use in others)
        bars.append(Bar(f"mean of {len(others):,} others", whole, tuple(means.items())))
    return tuple(bars)


def _parts(use: RankUse) -> dict[str, float]:
    """They add up to the span; what of exposed communication is neither is told apart."""
    transfer, waiting = use.exposed_transfer_us or 0.0, use.exposed_waiting_us or 0.0
    rest = max(use.exposed_us - transfer - waiting, 0.0)
    return {
        "compute": use.compute_us,
        "transfer": transfer,
        "waiting": waiting,
        "communication": rest if rest >= LEAST_PART_US else 0.0,
        "idle": use.idle_us,
    }


def rank_explorer(told: Ranks) -> Explorer:
    """A row a rank, the one that waited most first; it opens to whom it waited for, and why it was late itself."""
    unit, scale, decimals = scale_of(max(use.span_us for use in told.ranks))
    waited_for: dict[int, list[WaitedFor]] = defaultdict(list)
    for each in told.waits:
        waited_for[each.rank].append(each)
    late = {each.rank: each for each in told.late}
    ranked = sorted(told.ranks, key=lambda use: (-(use.waiting_us or 0.0), use.rank))

    def figure(us: float | None) -> Figure:
        return Figure(MISSING if us is None else f"{us / scale:,.{decimals}f}", -1.0 if us is None else us)

    rows = []
    for use in ranked[:MOST_ROWS]:
        longest = sorted(waited_for[use.rank], key=lambda each: -each.us)
        rows.append(
            ExplorerRow(
                number=use.rank,
                label=f"rank {use.rank}",
                is_code=False,
                words=(f"rank {longest[0].late}" if longest else MISSING,),
                figures=(*map(figure, _figures(use)), Figure(f"{use.last_arrivals:,}", use.last_arrivals)),
                facts=tuple(_facts(use, longest, late.get(use.rank))),
            )
        )
    more = len(ranked) - len(rows)
    left = f" {more:,} ranks that waited less are left out; the JSON has them." if more else ""
    return Explorer(
        caption=f"Where each rank's time goes, {unit}",
        noun="ranks",
        hint="rank, cause or place",
        head="Rank",
        words=("waits mostly for",),
        figures=ACCOUNT,
        rows=tuple(rows),
        note=f"{words.ACCOUNT_NOTE}{left}",
        anchor="rank",
    )


def _facts(use: RankUse, longest: list[WaitedFor], late: LateRank | None) -> Iterator[tuple[str, str]]:
    if longest:
        told = ", ".join(f"rank {each.late} {duration(each.us)}" for each in longest[:MOST_NAMED])
        more = f" and {len(longest) - MOST_NAMED} more" if len(longest) > MOST_NAMED else ""
        yield "Waits for", told + more
    if late is not None:
        waiter = f", rank {late.waiter} most of it" if late.waiter is not None else ""
        yield "Others wait for it", f"{duration(late.waited_for_us)}{waiter}"
        yield "Late because of", words.causes_told(late.causes, MOST_NAMED) or NO_CAUSE
        if late.where:
            yield "Mostly at", ", ".join(clipped_within(printable(each), 2 * PLACE) for each in late.where)
    causes = sorted(use.idle_causes, key=lambda each: -each.us)
    if causes:
        yield "Idle", ", ".join(f"{words.cause_name(each.cause)} {duration(each.us)}" for each in causes)
    if use.overlap_price_us is not None and use.overlap_price_ci95 is not None:
        low, high = map(duration, use.overlap_price_ci95)
        yield "Overlap price", f"{duration(use.overlap_price_us)} (95 % CI {low} to {high})"
    if use.start_skew_us:
        yield "Waited for others to start recording", f"{duration(use.start_skew_us)}, in no figure"
    yield "Recording", printable(use.path)


def _figures(use: RankUse) -> tuple[float | None, ...]:
    return (
        use.span_us,
        use.compute_us,
        use.exposed_transfer_us,
        use.exposed_waiting_us,
        use.idle_us,
        use.waiting_us,
        use.overlap_price_us,
    )


def late_table(told: Ranks, most: int) -> Table | None:
    """The ranks that were waited for, and why they were late."""
    rows = (
        (
            f" rank {each.rank}",
            duration(each.waited_for_us),
            words.causes_told(each.causes, 2) or NO_CAUSE,
            clipped_within(printable(each.where[0]), PLACE) if each.where else MISSING,
        )
        for each in told.late[:most]
    )
    return filled_table("", columns("Late", "others waited", "because of", "mostly at"), rows)


def collective_table(told: Ranks, most: int) -> Table | None:
    """The kinds of collectives, those with most time first."""
    rows = (_collective(each) for each in told.collectives[:most])
    heads = columns("Collectives", figures=("count", "bytes", "transfer", "waiting", "GB/s", "spread"))
    return filled_table("", (*heads, *columns("last", "mostly")), rows)


def _collective(each: CollectiveUse) -> tuple[str, ...]:
    waited = sum(one.us for one in each.waiting_us)
    late = each.late_ranks[0] if each.late_ranks else None
    return (
        f" {_named(each)}",
        f"{each.count:,}",
        size(each.bytes) if each.bytes is not None else MISSING,
        duration(each.transfer_us),
        duration(waited),
        f"{each.busbw_gbps:,.1f}" if each.busbw_gbps is not None else MISSING,
        duration(each.arrival_spread_us),
        f"rank {late.rank} ({late.times})" if late else MISSING,
        each.kind,
    )


def _named(each: CollectiveUse) -> str:
    return f"{each.name}{f' {each.dtype}' if each.dtype else ''}"


def matrix(told: Ranks, rows: int = MOST_WAITERS, heads: int = MOST_LATES) -> HeatMap | None:
    """Who waits (rows) for whom (columns): those that waited most, and were waited for most, first of all; what is left
    of either is told together."""
    found = _matrix(told, rows, heads)
    if found is None:
        return None
    lates, lines = found
    most = max(us for _, cells, _ in lines for us in cells) or 1.0

    def cell(us: float) -> HeatCell:
        strength = round(LEAST_PERCENT + us / most * (MOST_PERCENT - LEAST_PERCENT))
        return HeatCell(duration(us), "loss", strength) if us > 0 else HeatCell(MISSING, "missing")

    return HeatMap(
        caption="Waiting of each rank (rows) for each rank (columns)",
        columns=(*lates, "all"),
        rows=tuple((name, (*map(cell, cells), HeatCell(duration(whole), "even"))) for name, cells, whole in lines),
        keys=(("loss", "longest", MOST_PERCENT), ("loss", "shortest", LEAST_PERCENT)),
        note=words.MATRIX_NOTE,
        head="waits",
    )


def matrix_table(told: Ranks) -> Table | None:
    """The same in figures alone."""
    found = _matrix(told, MOST_WAITERS, MOST_LATES)
    if found is None:
        return None
    lates, lines = found
    rows = tuple(
        (name, *(duration(us) if us else MISSING for us in cells), duration(whole)) for name, cells, whole in lines
    )
    return Table("Who waits for whom", columns("waits", figures=(*lates, "all")), rows)


def _matrix(told: Ranks, rows: int, heads: int) -> tuple[list[str], list[tuple[str, list[float], float]]] | None:
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
    others = sorted(set(waited) - set(lates))
    first = sorted(sorted(waits, key=lambda rank: (-waits[rank], rank))[:rows])
    rest = sorted(set(waits) - set(first))

    def line(name: str, some: list[int]) -> tuple[str, list[float], float]:
        means = [fmean(cells.get((rank, late), 0.0) for rank in some) for late in lates]
        if others:
            means.append(fmean(sum(cells.get((rank, late), 0.0) for late in others) for rank in some))
        return name, means, fmean(waits[rank] for rank in some)

    lines = [line(f"rank {rank}", [rank]) for rank in first]
    if rest:
        lines.append(line(f"mean of {len(rest):,} others", rest))
    heads_ = [f"rank {late}" for late in lates] + ([f"{len(others):,} others"] if others else [])
    return heads_, lines


def worst_explorer(told: Ranks) -> Explorer | None:
    """The collectives that ranks waited in most, one by one."""
    if not told.worst:
        return None
    groups = {each.group for each in told.worst}
    rows = tuple(
        ExplorerRow(
            number=each.number,
            label=f"{each.number:,}: {_named(each)}",
            is_code=False,
            words=(
                _last(each),
                words.causes_told(each.causes, 1) or NO_CAUSE,
            ),
            figures=(
                Figure(duration(each.start_us), each.start_us or 0.0),
                Figure(size(each.bytes), each.bytes or -1.0),
                Figure(duration(each.arrival_spread_us), each.arrival_spread_us or -1.0),
                Figure(duration(waited := sum(one.us for one in each.waiting_us)), waited),
                Figure(duration(each.transfer_us), each.transfer_us or 0.0),
            ),
            place=f"group {each.group}" if len(groups) > 1 and each.group else "",
            facts=tuple(_collective_facts(each)),
        )
        for each in told.worst
    )
    return Explorer(
        caption=f"The {len(rows)} collectives that ranks waited in most" if len(rows) > 1 else "The collective",
        noun="collectives",
        hint="rank, cause or place",
        head="Collective",
        words=("last", "late because of"),
        figures=("begins at", "bytes", "spread", "waiting", "transfer"),
        rows=rows,
        note=words.WORST_NOTE,
        anchor="collective",
    )


def _last(each: OneCollective) -> str:
    return MISSING if each.last_rank is None else f"rank {each.last_rank}"


def _collective_facts(each: OneCollective) -> Iterator[tuple[str, str]]:
    longest = sorted(each.waiting_us, key=lambda one: -one.us)
    yield "Waiting by rank", ", ".join(f"{one.rank}: {duration(one.us)}" for one in longest[:MOST_LISTED])
    if each.causes:
        yield "Late because of", words.causes_told(each.causes, MOST_NAMED)
    if each.where:
        yield "Mostly at", printable(each.where)
    if each.step is not None:
        yield "Step", str(each.step)
    yield "Group", f"{each.group or MISSING}, {counted(len(each.ranks), 'rank')}"
    yield "Matched by", words.MATCHED[each.matched_by]


def worst_table(told: Ranks, most: int = 10) -> Table | None:
    """The same as a table."""
    rows = (
        (
            f"{each.number:,}: {_named(each)}",
            duration(each.start_us),
            size(each.bytes),
            duration(each.arrival_spread_us),
            duration(sum(one.us for one in each.waiting_us)),
            _last(each),
            words.causes_told(each.causes, 1) or NO_CAUSE,
        )
        for each in told.worst[:most]
    )
    heads = columns("collective", figures=("begins at", "bytes", "spread", "waiting"))
    return filled_table("Worst collectives", (*heads, *columns("last", "late because of")), rows)


def lateness_account(told: Ranks) -> Account | None:
    """Why the rank that others waited for most was late."""
    if not told.late:
        return None
    late = told.late[0]
    kept = [each for each in late.causes[:MOST_CAUSES] if each.us >= LEAST_CAUSE * late.waited_for_us]
    rest = sum(each.us for each in late.causes[len(kept) :])
    rows = [
        AccountRow(words.cause_name(each.cause), 0, (each.us,), what=_place(late) if at == 0 else "")
        for at, each in enumerate(kept)
    ]
    rows += [AccountRow("other causes", 0, (rest,))] if rest >= LEAST_REST * late.waited_for_us else []
    title = f"What the waiting for rank {late.rank} comes from"
    return Account(title, ("waiting of all ranks",), tuple(rows)) if rows else None


def _place(late: LateRank) -> str:
    return clipped_within(printable(late.where[0]), PLACE) if late.where else ""


def idle_table(told: Ranks) -> Table | None:
    causes = list(dict.fromkeys(share.cause for each in told.ranks for share in each.idle_causes))
    spent = {each.rank: {share.cause: share.us for share in each.idle_causes} for each in told.ranks}
    rows = ((f"rank {rank}", *(duration(own.get(cause)) for cause in causes)) for rank, own in spent.items())
    return filled_table("Idle time by cause", columns("", figures=map(words.cause_name, causes)), rows)


def uneven_table(told: Ranks, most: int = 20) -> Table | None:
    rows = (
        (
            f"rank {each.rank}",
            printable(each.name),
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
        (f"rank {each.rank}", words.UNMATCHED[each.reason], f"{each.count:,}", duration(each.total_us))
        for each in told.unmatched
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
        for each in told.collectives
    )
    heads = (*columns("collective", "group", "ranks", "matched by"), *columns(figures=("count", "algorithm GB/s")))
    return filled_table("How collectives were matched", (*heads, *columns("waiting by rank")), rows)


def spread_words(told: Ranks) -> str:
    """How far the clocks can be trusted."""
    apart = told.clock.uncertainty_us
    return words.CLOCKS[told.clock.basis] + (f", ends {duration(apart)} apart (median)" if apart is not None else "")
