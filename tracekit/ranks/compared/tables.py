"""All ranks of a job, eager and compiled: what changed on each, how each spends a call, what exposed communication
consists of, and the collectives."""

import math
from collections.abc import Iterator, Sequence

from tracekit.model.comparison import Comparison
from tracekit.model.waterfall import Waterfall
from tracekit.names import clipped_within
from tracekit.numbers import MISSING, count, duration, duration_change, figure_change, in_unit, percent, scale_of, size
from tracekit.ranks.compared import words
from tracekit.ranks.compared.nouns import JobChange, RankCall, RankChange, job_of
from tracekit.report import document as doc
from tracekit.report.composition.overview_account import LEAST_SLOWER
from tracekit.report.document import AccountRow, Table, columns, filled_table
from tracekit.report.words.common import cause_words

#: Ranks that have a row in the terminal.
MOST_RANKS = 3
#: Characters of a place.
PLACE = 40
#: Of a call: less is rounding.
LEAST_RESIDUAL = 0.001
#: Rows of the account.
TRANSFER, WAITING = "transfer", "waiting for late ranks"
#: Parts that are told in one column where there is little room.
TOGETHER = {
    "compute": ("compute",),
    "overlap price": ("overlap_price",),
    "transfer": ("exposed_transfer", "transfer_overlap"),
    "waiting": ("exposed_waiting",),
    "communication": ("exposed_communication",),
}


def rank_section(comparison: Comparison) -> doc.Section | None:
    """All ranks of a run of several."""
    job, names = job_of(comparison), (comparison.a.label, comparison.b.label)
    if job is None:
        return None
    tables = (change_table(job, names), call_table(job, names), collective_table(job, names))
    return doc.section("ranks", "Ranks", *(doc.Part(table, doc.TABLES) for table in tables), idle_table(job))


def communication_rows(comparison: Comparison) -> Iterator[AccountRow]:
    """What exposed communication consists of, where other ranks' recordings tell."""
    job = job_of(comparison)
    if job is None or job.told is None:
        return
    a, b = job.told
    transfer, waiting = ((getattr(a, name), getattr(b, name)) for name in ("exposed_transfer_us", "exposed_waiting_us"))
    yield AccountRow(TRANSFER, transfer, words.transfer_words(job, a, b))
    longest = max((b, a), key=lambda call: call.exposed_waiting_us or 0.0)
    is_much = max(waiting) >= LEAST_SLOWER * max(each.compute_us + each.exposed_us for each in (a, b))
    yield AccountRow(WAITING, waiting, words.waits_words(longest) if is_much else "")


def foremost(job: JobChange, most: int) -> tuple[RankChange, ...]:
    """The slowest rank, and those whose calls changed by most else, in order."""
    ranked = sorted(
        job.ranks,
        key=lambda each: (each.rank != job.slowest, -abs((each.b_wall_us or 0.0) - (each.a_wall_us or 0.0)), each.rank),
    )
    shown = {each.rank for each in ranked[:most]}
    return tuple(each for each in job.ranks if each.rank in shown)


def rank_lines(job: JobChange, names: tuple[str, str]) -> Table | None:
    """A line a rank of the terminal: both calls, and what made the change. None of a single rank, whose call is the
    job's."""
    if len(job.ranks) == 1:
        return None
    shown = foremost(job, MOST_RANKS)
    unit, scale, decimals = scale_of(max(us or 0.0 for each in job.ranks for us in _ends(each)))
    labels = {part.label for each in shown if each.waterfall for part in each.waterfall.parts}
    heads = [head for head, some in TOGETHER.items() if labels & set(some)]
    # Without a residual there is nothing to say of it.
    leaves = any(abs(_rest(each)[1] or 0.0) >= LEAST_RESIDUAL * (_ends(each)[0] or 0.0) for each in shown)
    left_over = (words.IDLE, words.RESIDUAL)[: 2 if leaves else 1] if heads else ()

    def row(each: RankChange) -> tuple[str, ...]:
        ends = (in_unit(us, scale, decimals) for us in _ends(each))
        changes = (*(_part(each, TOGETHER[head]) for head in heads), *_rest(each)[: len(left_over)])
        told = (MISSING if us is None else figure_change(us / scale, decimals) for us in changes)
        return (f"  {_name(each, job)}", *ends, *told)

    left = len(job.ranks) - len(shown)
    note = _notes(_profiled_note(shown, job), f"{left} more ranks on the page" if left else "")
    heads_ = columns(f"{words.OWN_CALLS}, {unit}", figures=(*names, *heads, *left_over))
    return Table("", heads_, tuple(map(row, shown)), note)


def _notes(*notes: str) -> str:
    return " ".join(filter(None, notes))


def _profiled_note(ranks: Sequence[RankChange], job: JobChange) -> str:
    return words.PROFILED_NOTE if any(words.PROFILED in _name(each, job) for each in ranks) else ""


def _name(each: RankChange, job: JobChange) -> str:
    """`rank 1, sets the pace`; a rank whose ends are recorded ones, where not all are."""
    bases = {fall.basis for one in job.ranks if (fall := one.waterfall)}
    apart = len(bases) > 1 and each.waterfall is not None and each.waterfall.basis == "trace"
    pace = words.PACE if each.rank == job.slowest and len(job.ranks) > 1 else ""
    return f"rank {each.rank}{pace}{words.PROFILED if apart else ''}"


def _ends(each: RankChange) -> tuple[float | None, float | None]:
    """What the changes lead from and to."""
    fall = each.waterfall
    return (fall.a_us, fall.b_us) if fall else (each.a_wall_us, each.b_wall_us)


def _part(each: RankChange, labels: Sequence[str]) -> float | None:
    if each.waterfall is None:
        return None
    found = [part.delta_us for part in each.waterfall.parts if part.kind != "idle" and part.label in labels]
    return math.fsum(found) if found else None


def _rest(each: RankChange) -> tuple[float | None, float | None]:
    """The change of idle time, with what no trace has a cause for; and what is left of the change of the call."""
    fall, a, b = each.waterfall, each.a, each.b
    if fall is None:
        return None, None
    by_cause = math.fsum(part.delta_us for part in fall.parts if part.kind == "idle")
    if a is None or b is None or a.idle_us is None or b.idle_us is None:
        return by_cause, fall.residual_us
    idle = b.idle_us - a.idle_us
    return idle, fall.residual_us - (idle - by_cause)


def change_table(job: JobChange, names: tuple[str, str]) -> Table:
    """A row a rank: from its call of A to that of B, part by part."""
    labels = {part.label for each in job.ranks if each.waterfall for part in each.waterfall.parts}
    heads = [label for label in words.PARTS if label in labels]
    between = (*(words.PARTS[each] for each in heads), words.IDLE, words.RESIDUAL) if labels else ()

    def row(each: RankChange) -> tuple[str, ...]:
        a_us, b_us = map(duration, _ends(each))
        changes = (*(_part(each, (label,)) for label in heads), *_rest(each))[: len(between)]
        return (_name(each, job), a_us, *map(duration_change, changes), b_us)

    note = _notes(words.CHANGE_NOTE if labels else "", _profiled_note(job.ranks, job), words.how_told(job))
    heads_ = columns("", figures=(names[0], *between, names[1]))
    return Table("From eager to compiled, rank by rank", heads_, tuple(map(row, job.ranks)), note)


def idle_table(job: JobChange) -> Table | None:
    """A row a rank: by how much each cause of idle time changed."""
    parts = {
        each.rank: {str(part.label): part.delta_us for part in each.waterfall.parts if part.kind == "idle"}
        for each in job.ranks
        if each.waterfall
    }
    causes = list(dict.fromkeys(cause for own in parts.values() for cause in own))
    rows = ((f"rank {rank}", *(duration_change(own.get(cause)) for cause in causes)) for rank, own in parts.items())
    heads = columns("", figures=map(cause_words, causes))
    return filled_table("Change of idle time by cause", heads, rows if causes else ())


def call_table(job: JobChange, names: tuple[str, str]) -> Table | None:
    """Two rows a rank: what a call of each form consists of, and for whom it waits."""
    rows = (
        (f"rank {each.rank}, {name}", *_call_figures(call, each.waterfall))
        for each in job.ranks
        for name, call in zip(names, (each.a, each.b), strict=True)
        if call is not None
    )
    figures = ("wall", "compute", "exposed transfer", "exposed waiting", "idle", "transfer", "overlapped")
    heads = (*columns("", figures=(*figures, "overlap price")), *columns("waits", "mostly at"))
    return filled_table("How each rank spends a call", heads, rows, words.CALL_NOTE)


def _call_figures(call: RankCall, fall: Waterfall | None) -> tuple[str, ...]:
    recorded, waits = fall is not None and fall.basis == "trace", words.waits_words(call)
    where = call.waits[0].where if waits else None
    exposed = (call.exposed_transfer_us, call.exposed_waiting_us)
    figures = (call.recorded_us if recorded else call.wall_us, call.compute_us, *exposed, call.idle_us)
    return (
        *map(duration, (*figures, call.transfer_us)),
        percent(call.overlapped_share, 0),
        duration(call.overlap_price_us),
        waits or MISSING,
        clipped_within(where, PLACE) if where else MISSING,
    )


def collective_table(job: JobChange, names: tuple[str, str]) -> Table | None:
    """A row a kind: how many, how large and how well covered, in both forms."""
    a, b = names
    told = ("bytes", "each", "transfer", "exposed")
    figures = (f"count, {a}", b, *(f"{figure}, {name}" for figure in told for name in names))
    rows = (
        (
            each.name,
            *map(count, (each.a_count, each.b_count)),
            *map(size, (each.a_bytes, each.b_bytes, each.a_each_bytes, each.b_each_bytes)),
            *map(duration, (each.a_transfer_us, each.b_transfer_us)),
            *map(duration, (each.a_exposed_transfer_us, each.b_exposed_transfer_us)),
        )
        for each in job.collectives
    )
    return filled_table("Collectives of a call, per rank", columns("", figures=figures), rows)
