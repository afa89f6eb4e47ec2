"""Many ranks as bars, tables that open, and the matrix."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from statistics import fmean

from tracekit.names import clipped_within
from tracekit.numbers import MISSING, counted, duration, in_unit, scale_of, size
from tracekit.ranks.job_figures import LateRank, OneCollective, Ranks, RankUse, WaitedFor
from tracekit.ranks.report import words
from tracekit.ranks.report.tables import (
    ACCOUNT,
    NO_CAUSE,
    PLACE,
    account_heads,
    collective_name,
    foremost,
    waited_us,
)
from tracekit.ranks.statements import findings as statements
from tracekit.ranks.statements.words import cause_name
from tracekit.report.document import Account, AccountRow, Bar, Explorer, ExplorerRow, Figure, HeatCell, HeatMap

#: What a rank's span consists of, by heads of the account; less communication without a match was lost in rounding.
SEGMENTS, LEAST_UNMATCHED_US = words.PARTS | {"idle": "idle"}, 0.01
LATE, LAST = "late", ", last most often"
#: Ranks in the table; ranks in a row of words, and waits by rank.
MOST_ROWS, MOST_NAMED, MOST_LISTED = 500, 4, 128
#: Rows and columns of the matrix.
MOST_WAITERS, MOST_LATES = 16, 8
#: How strong the matrix's colours are.
LEAST_PERCENT, MOST_PERCENT = 6, 42
#: Causes of one rank's lateness, and the share of it that one has; that all others have together.
MOST_CAUSES, LEAST_CAUSE, LEAST_REST = 4, 0.02, 0.005


def span_bars(told: Ranks, most: int) -> tuple[Bar, ...]:
    """What each rank's span consists of; of more than `most` those that lose or were waited for most, and the mean of
    the others. Who is late is marked, or else who is the last most often."""
    shown, others = foremost(told, most if len(told.ranks) <= most else most - 1)
    parts = {use.rank: _parts(use) for use in told.ranks}
    occur = [kind for kind in SEGMENTS if any(each[kind] for each in parts.values())]
    late = {each.rank for each in told.findings if isinstance(each, statements.LateRank)}
    often = max(told.ranks, key=lambda use: use.last_arrivals)
    is_last = not late and often.last_arrivals and len(told.ranks) > 1
    bars = [
        Bar(
            f"rank {use.rank}{LAST if is_last and use is often else ''}",
            use.span_us,
            tuple((kind, parts[use.rank][kind]) for kind in occur),
            LATE if use.rank in late else "",
        )
        for use in shown
    ]
    if others:
        means = tuple((kind, fmean(parts[use.rank][kind] for use in others)) for kind in occur)
        bars.append(Bar(f"mean of {len(others):,} others", fmean(use.span_us for use in others), means))
    return tuple(bars)


def _parts(use: RankUse) -> dict[str, float]:
    """They add up to the span; what of exposed communication is neither is told apart."""
    parts = {kind: ACCOUNT[head](use) or 0.0 for kind, head in SEGMENTS.items()}
    return parts if parts["unmatched"] >= LEAST_UNMATCHED_US else parts | {"unmatched": 0.0}


def rank_explorer(told: Ranks) -> Explorer:
    """A row a rank, the one that loses most to communication first; it opens to whom it waited for, and why it was late
    itself."""
    unit, scale, decimals = scale_of(max(use.span_us for use in told.ranks))
    waits: dict[int, list[WaitedFor]] = defaultdict(list)
    for each in sorted(told.waits, key=lambda each: -each.us):
        waits[each.rank].append(each)
    late, heads = {each.rank: each for each in told.late}, account_heads(told)
    ranked = sorted(told.ranks, key=lambda use: (-use.communication_cost_us, use.rank))

    def figure(us: float | None) -> Figure:
        return Figure(in_unit(us, scale, decimals), -1.0 if us is None else us)

    rows = tuple(
        ExplorerRow(
            number=use.rank,
            label=f"rank {use.rank}",
            words=(f"rank {waits[use.rank][0].late}" if waits[use.rank] else MISSING,),
            figures=(
                *(figure(ACCOUNT[head](use)) for head in heads),
                Figure(f"{use.last_arrivals:,}", use.last_arrivals),
            ),
            facts=tuple(_facts(use, waits[use.rank], late.get(use.rank))),
        )
        for use in ranked[:MOST_ROWS]
    )
    more = len(ranked) - len(rows)
    left = f" {more:,} ranks that lose less are left out; the JSON has them." if more else ""
    parts = " + ".join(heads[1 : heads.index("idle") + 1])
    return Explorer(
        caption=f"Where each rank's time goes, {unit}",
        noun="ranks",
        hint="rank, cause or place",
        head="Rank",
        words=("waits mostly for",),
        figures=(*heads, words.CAME_LAST),
        rows=rows,
        note=f"span = {parts}. {words.ACCOUNT_NOTE}{left}",
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
            yield "Mostly at", ", ".join(clipped_within(each, 2 * PLACE) for each in late.where)
    causes = sorted(use.idle_causes, key=lambda each: -each.us)
    if causes:
        yield "Idle", ", ".join(f"{cause_name(each.cause)} {duration(each.us)}" for each in causes)
    if use.overlap_price_us is not None and use.overlap_price_ci95 is not None:
        low, high = map(duration, use.overlap_price_ci95)
        yield "Overlap price", f"{duration(use.overlap_price_us)} (95 % CI {low} to {high})"
    if use.start_skew_us:
        yield "Waited for others to start recording", f"{duration(use.start_skew_us)}, in no figure"
    yield "Recording", use.path


def matrix(told: Ranks, rows: int = MOST_WAITERS) -> HeatMap | None:
    """Who waits (rows) for whom (columns): those that waited most, and were waited for most, first of all; what is left
    of either is told together, of rows the mean."""
    if not told.waits:
        return None
    waits, waited = dict.fromkeys((use.rank for use in told.ranks), 0.0), defaultdict[int, float](float)
    for each in told.waits:
        waits[each.rank] += each.us
        waited[each.late] += each.us
    row_of = _named(waits, rows, f"mean of {len(waits) - rows:,} others")
    column_of = _named(waited, MOST_LATES, f"{len(waited) - MOST_LATES:,} others")
    in_row, cells = Counter(row_of.values()), defaultdict[tuple[str, str], float](float)
    for each in told.waits:
        row = row_of[each.rank]
        cells[row, column_of[each.late]] += each.us / in_row[row]
    heads = tuple(dict.fromkeys(column_of.values()))
    # Of all other columns together there is a sum behind those of single ranks: no colour compares with it.
    single, others = heads[:MOST_LATES], heads[MOST_LATES:]
    most = max(cells[row, head] for row in in_row for head in single) or 1.0
    unit, scale, decimals = scale_of(max(cells.values()))

    def line(row: str) -> Iterator[HeatCell]:
        for head in single:
            text = in_unit(cells[row, head], scale, decimals)
            yield coloured(text, cells[row, head] / most) if cells[row, head] > 0 else HeatCell(MISSING, "missing")
        for us in (*(cells[row, head] for head in others), sum(cells[row, head] for head in heads)):
            yield HeatCell(in_unit(us, scale, decimals), "even")

    return HeatMap(
        caption=f"Waiting of each rank (rows) for each rank (columns), {unit}",
        columns=(*heads, "all"),
        rows=tuple((row, tuple(line(row))) for row in in_row),
        keys=(("loss", "longest", MOST_PERCENT), ("loss", "shortest", LEAST_PERCENT)),
        note=words.MATRIX_NOTE,
        head="waits",
    )


def _named(waits: Mapping[int, float], most: int, others: str) -> dict[int, str]:
    """What each rank is called: `most` by their numbers, those with the longest waits, and behind them the `others`."""
    longest = sorted(waits, key=lambda rank: (-waits[rank], rank))
    return {rank: f"rank {rank}" for rank in sorted(longest[:most])} | dict.fromkeys(longest[most:], others)


def coloured(text: str, share: float) -> HeatCell:
    """A loss, as strong as `share` says, 0 to 1."""
    return HeatCell(text, "loss", round(LEAST_PERCENT + share * (MOST_PERCENT - LEAST_PERCENT)))


def worst_explorer(told: Ranks) -> Explorer | None:
    """The collectives that ranks waited in most, one by one."""
    if not told.worst:
        return None
    groups = {each.group for each in told.worst}
    # Why the last rank came late, where anybody knows of any.
    because = ("late because of",) if any(each.causes for each in told.worst) else ()
    rows = tuple(
        ExplorerRow(
            number=each.number,
            label=f"{each.number:,}: {collective_name(each)}",
            words=(
                MISSING if each.last_rank is None else f"rank {each.last_rank}",
                *(words.causes_told(each.causes, 1) or NO_CAUSE for _ in because),
            ),
            figures=(
                Figure(duration(each.start_us), each.start_us or 0.0),
                Figure(size(each.bytes), each.bytes or -1.0),
                Figure(duration(each.arrival_spread_us), each.arrival_spread_us or -1.0),
                Figure(duration(waited_us(each)), waited_us(each)),
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
        words=(words.CAME_LAST, *because),
        figures=("begins at", "bytes", words.LATE_BY, "waiting"),
        rows=rows,
        note=words.WORST_NOTE,
        anchor="collective",
    )


def _collective_facts(each: OneCollective) -> Iterator[tuple[str, str]]:
    longest = sorted(each.waiting_us, key=lambda one: -one.us)
    yield "Waiting by rank", ", ".join(f"{one.rank}: {duration(one.us)}" for one in longest[:MOST_LISTED])
    yield "Transfer", duration(each.transfer_us)
    if each.causes:
        yield "Late because of", words.causes_told(each.causes, MOST_NAMED)
    if each.where:
        yield "Mostly at", each.where
    if each.step is not None:
        yield "Step", str(each.step)
    yield "Group", f"{each.group or MISSING}, {counted(len(each.ranks), 'rank')}"
    yield "Matched by", words.MATCHED[each.matched_by]


def lateness_account(told: Ranks) -> Account | None:
    """Why the rank that made most waiting itself was late."""
    if not told.late:
        return None
    late = told.late[0]
    kept = [each for each in late.causes[:MOST_CAUSES] if each.us >= LEAST_CAUSE * late.waited_for_us]
    rest = sum(each.us for each in late.causes[len(kept) :])
    where = clipped_within(late.where[0], PLACE) if late.where else ""
    rows = [
        AccountRow(cause_name(each.cause), (each.us,), where if at == 0 else "", level=0)
        for at, each in enumerate(kept)
    ]
    if rest >= LEAST_REST * late.waited_for_us:
        rows.append(AccountRow("other causes", (rest,), level=0))
    title = f"What the waiting for rank {late.rank} comes from"
    return Account(title, ("waiting of all ranks",), tuple(rows)) if rows else None
