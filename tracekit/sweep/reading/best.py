"""Which way to run a work is best for what, and which ways nothing tells apart?

The largest of many figures is largest by chance too: of eight modes that are equally fast the one that reads best reads
too high. One more process does not know which was chosen, so that what it says is not too high on average (`confirm`).
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from tracekit.comparison.judging.thresholds import ENOUGH_PROCESSES, LEAST_IN_ONE_PROCESS, LEAST_IN_SEVERAL
from tracekit.comparison.judging.verdict import speedup_of
from tracekit.model.estimate import Estimate, Order, compare_estimates, exactly
from tracekit.sweep.cells import CellResult
from tracekit.sweep.figures import Best, Candidate, CellFigures, Confirmed, EagerPool, Goal, Standing
from tracekit.sweep.reading.cell_figures import read_cell

#: Between starts, of which each is measured once: another one differs by so much.
LEAST_OF_STARTS = 0.1
#: Between sizes of memory: torch takes it from the driver in pieces of 2 MiB or more.
LEAST_OF_MEMORY = 0.01
#: What a cell's result establishes of it beside the eager form.
BY_RESULT: dict[str | None, Standing] = {"faster": "better", "slower": "worse"}
#: What beats eager takes less.
BY_ORDER: dict[Order | None, Standing] = {"smaller": "better", "larger": "worse", None: "undecided"}
#: In this order; the eager form stands between what is better and what is not.
RANKS: dict[Standing | None, int] = {"better": 0, None: 1, "undecided": 2, "worse": 3}


def find_best(eager: EagerPool | None, cells: Sequence[CellFigures], calls: int, command: str) -> tuple[Best, ...]:
    """The best for each goal that two ways at least were measured for; `command` runs the eager one."""
    timed = [cell for cell in cells if cell.compiled is not None and cell.outcome == "done"]
    # Cells are timed in processes of their own: what the same eager work differs by between those is no difference of
    # theirs. Intervals over enough processes know it already.
    spread = eager.spread if eager else 0.0
    known = all(cell.verdict and (cell.verdict.processes or 1) >= ENOUGH_PROCESSES for cell in timed)
    least_latency = LEAST_IN_SEVERAL if timed and known else max(LEAST_IN_ONE_PROCESS, spread)
    verdicts = {cell.cell.key: cell.verdict for cell in timed if cell.verdict}
    noise = {key: max(each.noise_floor or 0.0, each.least_change or 0.0) for key, each in verdicts.items()}
    found = [_rank("latency", None, _latencies(eager, timed, command), least_latency, noise)]
    for number in dict.fromkeys((1, calls)):
        least = max(LEAST_OF_STARTS, spread)
        found.append(_rank("cold_start", number, _starts(eager, timed, number, command, least), least, {}))
    found.append(_rank("memory", None, _memories(eager, timed, command), LEAST_OF_MEMORY, {}))
    return tuple(best for best in found if len(best.candidates) > 1)


def _latencies(eager: EagerPool | None, timed: Sequence[CellFigures], command: str) -> Iterator[Candidate]:
    """Time relative to eager calls of the same process, which meets what differs between processes in part. What beats
    eager, and what eager beats, is what the cell's result says."""
    if eager is not None:
        yield Candidate(None, "eager", None, 1.0, (1.0, 1.0), command, None, None)
    for cell in timed:
        verdict = cell.verdict
        # Calls that compiled say nothing of calls that do not.
        if verdict and (speedup := speedup_of(verdict)) and not cell.during_timing:
            standing = BY_RESULT.get(cell.result, "undecided")
            yield replace(_candidate(cell, 1 / speedup.value, standing), ci95=(1 / speedup.high, 1 / speedup.low))


def _starts(
    eager: EagerPool | None, timed: Sequence[CellFigures], calls: int, command: str, least: float
) -> Iterator[Candidate]:
    """From a process that has the model to so many calls. A compiled form's was measured after the eager one's, and was
    spared what that did for both: what it would take first is between two numbers, of which the larger is its figure.
    """
    eager_us = None
    if eager is not None:
        eager_us = eager.first_call_us if calls == 1 else eager.soon_us
        yield Candidate(None, "eager", None, eager_us, None, command, None, None)
    for cell in timed:
        us, found = cell.first_call_us if calls == 1 else cell.soon_us, cell.break_even
        if us is None:
            continue
        most_us, standing = us + (cell.spared_us or 0.0), None
        if eager_us is not None:
            # What has not paid by then is not better, however short another process's calls were.
            pays = found is not None and found.calls_ci95 is not None and found.calls_ci95[1] <= calls
            order = compare_estimates(exactly(most_us if pays else us), exactly(eager_us), least)
            decided = order == ("smaller" if pays else "larger")
            standing = "worse" if found and found.never else BY_ORDER[order] if decided else "undecided"
        yield replace(_candidate(cell, most_us, standing), lowest=us)


def _memories(eager: EagerPool | None, timed: Sequence[CellFigures], command: str) -> Iterator[Candidate]:
    """What steady calls hold; of eager ones where a process had no other form."""
    eager_bytes = eager.memory_bytes if eager else None
    if eager_bytes is not None:
        yield Candidate(None, "eager", None, float(eager_bytes), None, command, None, None)
    for cell in timed:
        held = cell.compiled.memory_bytes if cell.compiled else None
        if held is not None:
            against = None if eager_bytes is None else exactly(eager_bytes)
            standing = BY_ORDER[compare_estimates(exactly(held), against, LEAST_OF_MEMORY)] if against else None
            yield _candidate(cell, float(held), standing)


def _candidate(cell: CellFigures, value: float, against_eager: Standing | None) -> Candidate:
    asked = cell.cell.request
    return Candidate(cell.cell.key, asked.mode, asked.scope, value, None, cell.command, None, against_eager)


def _rank(
    goal: Goal, calls: int | None, candidates: Iterator[Candidate], least: float, noise: Mapping[str, float]
) -> Best:
    """`noise` is how far a cell must be from another at least, besides what all must."""
    # Where two are alike the first stays first.
    ordered = sorted(candidates, key=lambda each: (RANKS[each.against_eager], each.value))
    ranked = ordered[:1]
    for each in ordered[1:]:
        first, needed = ordered[0], None
        # Beside eager, and of what stands otherwise beside it, no distance decides.
        if first.key is not None and each.key is not None and first.against_eager == each.against_eager:
            needed = max(least, noise.get(first.key, 0.0), noise.get(each.key, 0.0))
        ranked.append(replace(each, needed=needed))
    tied = tuple(number for number, each in enumerate(ranked) if number == 0 or _ties(ranked[0], each))
    return Best(goal, calls, tuple(ranked), tied, least)


def _ties(best: Candidate, other: Candidate) -> bool:
    """Whether nothing separates the two. Beside eager it is what was established of the other that decides; two that
    were measured alike are compared with each other."""
    if best.key is None or other.key is None:
        return other.against_eager == "undecided"
    if other.needed is None:
        return False
    ours, theirs = (Estimate(each.value, *(each.ci95 or (each.value, each.value))) for each in (best, other))
    pairs = [(ours, theirs)]
    # What both were spared is alike, so that both ends are compared, each with its own.
    if best.lowest is not None and other.lowest is not None:
        pairs.append((exactly(best.lowest), exactly(other.lowest)))
    return any(compare_estimates(theirs, ours, other.needed) != "larger" for ours, theirs in pairs)


def confirm(best: Best, again: Sequence[CellResult]) -> Best:
    """With what the last such process of the first says, where there is one."""
    key = best.to_confirm
    last = max((each for each in again if each.cell.key == key), key=lambda each: each.started, default=None)
    if key is None or last is None:
        return best
    cell = read_cell((last,), 1)
    verdict, second = cell.verdict, best.candidates[1]
    speedup = verdict.speedup if verdict else None
    compared = speedup is not None and best.clear and second.key is not None and second.against_eager == "better"
    confirmed = Confirmed(
        outcome=last.outcome,
        failure=last.failure,
        started=last.started,
        speedup=speedup,
        ci95=verdict.ci95 if verdict else None,
        next_process95=verdict.next_process95 if verdict else None,
        eager_us=cell.eager.median_us if cell.eager else None,
        compiled_us=cell.compiled.median_us if cell.compiled else None,
        beats_eager=verdict.result == "faster" if verdict else None,
        beats_next=1 / speedup < second.value if compared and speedup else None,
    )
    return replace(best, confirmed=confirmed)
