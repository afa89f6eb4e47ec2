"""Which way to run a work is best for what, and which ways nothing tells apart?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tracekit.comparison.judging.verdict import LEAST_IN_ONE_PROCESS
from tracekit.model.sweep_figures import Best, Candidate, CellFigures, EagerPool, Goal, Standing

#: A start is measured once, and another one differs by so much.
LEAST_OF_STARTS = 0.1
#: Torch takes memory from the driver in pieces: less than this part is of how they happened to be cut.
LEAST_OF_MEMORY = 0.01

#: What a cell's verdict establishes of it beside the eager form of its process.
BY_VERDICT: dict[str, Standing] = {"faster": "better", "slower": "worse"}
#: In this order; the eager form stands between what is better and what is not.
RANKS: dict[Standing | None, int] = {"better": 0, None: 1, "undecided": 2, "worse": 3}


@dataclass(frozen=True, slots=True)
class Contender:
    """A candidate, and how far it must be from another at least besides what all must."""

    candidate: Candidate
    noise: float = 0.0


def find_best(eager: EagerPool | None, cells: Sequence[CellFigures], calls: int, command: str) -> tuple[Best, ...]:
    """The best for each goal that two ways at least were measured for; `command` runs the eager one."""
    timed = [cell for cell in cells if cell.compiled is not None and cell.outcome == "done"]
    return tuple(best for best in _goals(eager, timed, calls, command) if len(best.candidates) > 1)


def _goals(eager: EagerPool | None, timed: Sequence[CellFigures], calls: int, command: str) -> Iterator[Best]:
    least = max(LEAST_IN_ONE_PROCESS, _spread(eager))
    yield _judged("latency", None, list(_latencies(eager, timed, command)), least)
    for number in dict.fromkeys((1, calls)):
        least = max(LEAST_OF_STARTS, _spread(eager))
        yield _judged("cold_start", number, list(_starts(eager, timed, number, command, least)), least)
    yield _judged("memory", None, list(_held(eager, timed, command)), LEAST_OF_MEMORY)


def _spread(eager: EagerPool | None) -> float:
    """Cells are timed in processes of their own: what the same eager work differs by between those is no difference of
    theirs."""
    return eager.spread if eager else 0.0


def _latencies(eager: EagerPool | None, timed: Sequence[CellFigures], command: str) -> Iterator[Contender]:
    """Time relative to eager calls of the same process, which meets what differs between processes in part. What beats
    eager, and what eager beats, is what the cell's own verdict says."""
    if eager is not None:
        yield _eager(1.0, command, (1.0, 1.0))
    for cell in timed:
        verdict = cell.verdict
        # Calls that compiled say nothing of calls that do not.
        if verdict and verdict.speedup and verdict.ci95 and not cell.during_timing:
            low, high = verdict.ci95
            standing = BY_VERDICT.get(verdict.result, "undecided")
            candidate = _candidate(cell, 1 / verdict.speedup, standing, ci95=(1 / high, 1 / low))
            yield Contender(candidate, max(verdict.noise_floor or 0.0, verdict.least_change or 0.0))


def _starts(
    eager: EagerPool | None, timed: Sequence[CellFigures], calls: int, command: str, least: float
) -> Iterator[Contender]:
    """From a process that has the model to so many calls. A compiled form's was measured after the eager one's, and was
    spared what that did for both: what it would take first is between two numbers, of which the larger is its figure.
    """
    alone_us = None
    if eager is not None:
        alone_us = eager.first_call_us if calls == 1 else eager.soon_us
        yield _eager(alone_us, command)
    for cell in timed:
        us = cell.first_call_us if calls == 1 else cell.soon_us
        if us is not None:
            most_us = us + (cell.spared_us or 0.0)
            standing = None if alone_us is None else _of_start(cell, calls, (us, most_us), alone_us, least)
            yield Contender(_candidate(cell, most_us, standing, lowest=us))


def _of_start(cell: CellFigures, calls: int, ends_us: tuple[float, float], alone_us: float, least: float) -> Standing:
    """By the cell's break-even: what has not paid by then is not better, however short another process's calls were."""
    found, lowest_us, most_us = cell.break_even, *ends_us
    if found is not None and found.never:
        return "worse"
    pays = found is not None and found.calls_ci95 is not None and found.calls_ci95[1] <= calls
    if pays:
        return "better" if alone_us > most_us * (1 + least) else "undecided"
    return "worse" if lowest_us > alone_us * (1 + least) else "undecided"


def _held(eager: EagerPool | None, timed: Sequence[CellFigures], command: str) -> Iterator[Contender]:
    """What steady calls hold; of eager ones where a process had no other form."""
    alone = eager.memory_bytes if eager else None
    if alone is not None:
        yield _eager(float(alone), command)
    for cell in timed:
        taken = cell.compiled.memory_bytes if cell.compiled else None
        if taken is not None:
            yield Contender(_candidate(cell, float(taken), None if alone is None else _of_memory(taken, alone)))


def _of_memory(taken: int, alone: int) -> Standing:
    if alone > taken * (1 + LEAST_OF_MEMORY):
        return "better"
    return "worse" if taken > alone * (1 + LEAST_OF_MEMORY) else "undecided"


def _judged(goal: Goal, calls: int | None, contenders: Sequence[Contender], least: float) -> Best:
    # Where two are alike the first stays first.
    ordered = sorted(contenders, key=lambda each: (RANKS[each.candidate.against_eager], each.candidate.value))
    tied = tuple(number for number, each in enumerate(ordered) if _ties(ordered[0], each, least))
    candidates = tuple(replace(each.candidate, needed=_needed(ordered[0], each, least)) for each in ordered)
    return Best(goal, calls, candidates, tied, least)


def _needed(best: Contender, other: Contender, least: float) -> float | None:
    """How far the other must be behind to count as behind; None where that is not what decides."""
    one, two = best.candidate, other.candidate
    if one.key is None or two.key is None or best is other or one.against_eager != two.against_eager:
        return None
    return max(least, best.noise, other.noise)


def _ties(best: Contender, other: Contender, least: float) -> bool:
    """Whether nothing separates the two. Beside eager it is what was established of the other that tells; two that
    were measured alike are compared with each other."""
    one, two = best.candidate, other.candidate
    if one.key is None or two.key is None:
        return best is other or two.against_eager == "undecided"
    needed = _needed(best, other, least)
    return best is other or (needed is not None and not _behind(one, two, needed))


def _behind(best: Candidate, other: Candidate, least: float) -> bool:
    """Whether the other is clearly worse: its interval apart from the best one's, and farther than what is small."""
    apart = best.ci95 is None or other.ci95 is None or best.ci95[1] < other.ci95[0]
    # What both were spared is alike, so that both ends are compared, each with its own.
    ends = [(best.value, other.value)]
    ends += [(best.lowest, other.lowest)] if best.lowest is not None and other.lowest is not None else []
    return apart and all(theirs > ours * (1 + least) for ours, theirs in ends)


def _candidate(
    cell: CellFigures,
    value: float,
    against_eager: Standing | None,
    *,
    ci95: tuple[float, float] | None = None,
    lowest: float | None = None,
) -> Candidate:
    asked = cell.cell.request
    return Candidate(cell.cell.key, asked.mode, asked.scope, value, ci95, cell.command, lowest, against_eager)


def _eager(value: float, command: str, ci95: tuple[float, float] | None = None) -> Contender:
    return Contender(Candidate(None, "eager", None, value, ci95, command, None, None))
