"""Many ranks in thirty lines."""

from collections.abc import Iterator
from itertools import islice

from tracekit.numbers import counted, duration, percent
from tracekit.ranks.job_figures import Ranks, RankUse
from tracekit.ranks.report import words
from tracekit.ranks.report.fleet import axis_table, straggler_table
from tracekit.ranks.report.tables import account_table, collective_table, late_table, unmatched_us
from tracekit.ranks.statements import findings as statements
from tracekit.ranks.statements.notes import NoCollectives
from tracekit.ranks.statements.words import cost_words, per_step, remedy
from tracekit.report.document import Advice, Check, Overview
from tracekit.shell import quoted

#: Ranks, late ranks and collectives that find room in thirty lines, and notes, findings and pieces of advice.
MOST_RANKS, MOST_LATE, MOST_COLLECTIVES, MOST_NOTES, MOST_FINDINGS, MOST_ADVICE = 6, 3, 4, 3, 3, 2
#: Of ranks and collectives, where stragglers or groups need room too; and of stragglers.
FEW, MOST_STRAGGLERS = 2, 5
#: Of a rank's time: what waiting costs, and unmatched communication, that is worth a headline.
LEAST_WAITING = 0.1


def ranks_overview(told: Ranks) -> Overview:
    warned = [each for each in told.findings if each.severity != "info"]
    late = (each for kind in (statements.LateRank, statements.Straggler) for each in warned if isinstance(each, kind))
    first = next(late, None)
    # What is the answer is not said again.
    notes = [*words.note_sentences([each for each in told.notes if not isinstance(each, NoCollectives)])]
    if told.straggler_rule and not told.stragglers:
        notes.append(words.rule_words(told.straggler_rule))
    # Stragglers have a table.
    others = (each for each in told.findings if each is not first and not isinstance(each, statements.Straggler))
    more = [each.title() for each in others]
    steps = counted(told.steps.count, "step")
    stretch = {"steps": steps, "span": "named spans", "whole": "whole recordings"}[told.steps.kind]
    crowded = bool(told.stragglers or told.groups)
    tables = (
        straggler_table(told, MOST_STRAGGLERS),
        # Who came last stands with the answer, and with each kind of collective.
        account_table(told, FEW if crowded else MOST_RANKS),
        axis_table(told),
        None if told.stragglers else late_table(told, MOST_LATE),
        collective_table(told, FEW if crowded else MOST_COLLECTIVES),
    )
    return Overview(
        subject=f"{words.ranks_read(told.world)} · {stretch} · {words.spread_words(told.clock)}",
        headline=first.title() if first else _nobody(told),
        result=("", "slower" if first else ""),
        evidence=first.long() if first else _nobody_rests_on(told),
        notes=tuple(notes[:MOST_NOTES]),
        tables=tuple(filter(None, tables)),
        advice=tuple(islice(_advice(told), MOST_ADVICE)),
        left_out=words.left_out(told),
        checks=tuple(Check("", each) for each in more[:MOST_FINDINGS]),
        hidden=len(notes[MOST_NOTES:]) + len(more[MOST_FINDINGS:]),
    )


def _nobody(told: Ranks) -> str:
    """The answer where no rank is late by itself: what communication costs the job, and how much of it is waiting."""
    if silent := next((each for each in told.notes if isinstance(each, NoCollectives)), None):
        return silent.long().rstrip(".")
    use = _loser(told)
    share = use.communication_cost_us / (use.span_us or 1.0)
    cost = cost_words(use.exposed_us, use.seen_price_us, share, told.steps.count)
    return f"Communication {cost}; {_waiting(told)}"


def _loser(told: Ranks) -> RankUse:
    return max(told.ranks, key=lambda use: use.communication_cost_us)


def _waiting(told: Ranks) -> str:
    """How much of each rank's time at most is lost to late ranks, as far as that can be told."""
    waits = [each for each in told.ranks if each.exposed_waiting_us is not None]
    if not waits or len(told.ranks) < 2:
        return "waiting cannot be told from transfer"
    worst = max(waits, key=_waiting_share)
    share = percent(_waiting_share(worst), 1)
    unmatched, whose = max((unmatched_us(use) / (use.span_us or 1.0), use.rank) for use in waits)
    if unmatched >= LEAST_WAITING:
        return f"late ranks cannot be told: {percent(unmatched, 0)} of rank {whose}'s time is unmatched communication"
    if told.clock.basis == "bound":
        return f"late ranks cannot be told: at least {share} of rank {worst.rank}'s time is lost to them"
    if _waiting_share(worst) < LEAST_WAITING:
        return f"waiting at most {share}"
    waited = [each for each in told.waits if each.rank == worst.rank]
    if not waited:
        return f"waiting at least {share}, for ranks that cannot be told"
    return f"waiting {share}, mostly for rank {max(waited, key=lambda each: each.us).late}"


def _waiting_share(use: RankUse) -> float:
    """Of a rank's time what waiting costs."""
    return use.waiting_cost_us / (use.span_us or 1.0)


def _nobody_rests_on(told: Ranks) -> str:
    """Who loses most, and who came last."""
    loses = len(told.ranks) > 1 and any(use.exposed_us for use in told.ranks)
    most = f"Rank {_loser(told).rank} loses most. " if loses else ""
    return f"{most}{words.last_words(told)}".rstrip()


def _advice(told: Ranks) -> Iterator[Advice]:
    """What to do next, by the findings, late ranks first; and where ranks wait though none is late, by what makes the
    one late that is waited for most."""
    # In the current folder a file may be called like an option.
    paths = {each.rank: quoted(f"./{each.path}" if each.path.startswith("-") else each.path) for each in told.ranks}
    late = {each.rank: each for each in told.findings if isinstance(each, statements.LateRank)}
    for each in late.values():
        cost = per_step(each.cost_us, each.steps)
        gain = f"up to {cost} of rank {each.waiter}'s time (est.)"
        codes = {one.code for one in told.findings if one.rank == each.rank}
        compute = each.cause == "compute"
        cause = next((code for code in ("slow_gpu", "uneven_work") if compute and code in codes), each.cause)
        yield _remedy(cause, each.rank or 0, each.waiter, paths, gain)
    for found in told.findings:
        if (what := found.to_do()) and found.rank not in late:
            command = found.command
            if isinstance(found, statements.StragglerRank):
                command = f"tracekit analyze {paths[found.rank or 0]}"
            yield Advice(what, found.why, saved_words(found.saving_us), False, command)
    worst = max(map(_waiting_share, told.ranks))
    if not late and worst >= LEAST_WAITING and told.late and (first := told.late[0]).causes:
        waiter = first.waiter if first.waiter is not None else first.rank
        yield _remedy(first.causes[0].cause, first.rank, waiter, paths, "")


def _remedy(cause: str, rank: int, waiter: int, paths: dict[int, str], gain: str) -> Advice:
    command = f"tracekit analyze {paths[rank]}"
    if cause in ("compute", "uneven_work"):
        command = f"tracekit compare {paths[waiter]} {paths[rank]}"
    elif cause == statements.SlowGpu.code:
        command = statements.SlowGpu.command
    return Advice(remedy(cause, rank, waiter), "", gain, False, command)


def saved_words(us: float | None) -> str:
    return f"up to {duration(us)} (est.)" if us else ""
