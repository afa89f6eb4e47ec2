"""Which way to run a work is best for what, and which ways nothing tells apart?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.comparison.commands import profile_command
from tracekit.comparison.verdict import LEAST_IN_ONE_PROCESS
from tracekit.model.sweep_figures import Best, Candidate, CellFigures, EagerPool, Goal

#: A start is measured once, and another one differs by so much.
LEAST_OF_STARTS = 0.1
#: Torch takes memory from the driver in pieces: less than this part is of how they happened to be cut.
LEAST_OF_MEMORY = 0.01


def find_best(eager: EagerPool | None, cells: Sequence[CellFigures], calls: int) -> tuple[Best, ...]:
    """The best for each goal that two ways at least were measured for."""
    timed = [cell for cell in cells if cell.compiled is not None and cell.outcome == "done"]
    settings = next((cell.settings for cell in cells if cell.settings), None)
    command = profile_command(settings, compiled=False) if settings else ""
    return tuple(best for best in _goals(eager, timed, calls, command) if len(best.candidates) > 1)


def _goals(eager: EagerPool | None, timed: Sequence[CellFigures], calls: int, command: str) -> Iterator[Best]:
    yield _judged("latency", None, list(_latencies(eager, timed, command)), max(LEAST_IN_ONE_PROCESS, _spread(eager)))
    for number in dict.fromkeys((1, calls)):
        starts = [] if eager is None else [_eager(eager.first_call_us if number == 1 else eager.soon_us, command)]
        for cell in timed:
            us = cell.first_call_us if number == 1 else cell.soon_us
            starts += [_candidate(cell, us)] if us is not None else []
        yield _judged("cold_start", number, starts, max(LEAST_OF_STARTS, _spread(eager)))
    held = [] if eager is None or eager.memory_bytes is None else [_eager(float(eager.memory_bytes), command)]
    for cell in timed:
        taken = cell.compiled.memory_bytes if cell.compiled else None
        held += [_candidate(cell, float(taken))] if taken is not None else []
    yield _judged("memory", None, held, LEAST_OF_MEMORY)


def _spread(eager: EagerPool | None) -> float:
    """Cells are timed in processes of their own: what the same eager work differs by between those is no difference of
    theirs."""
    return eager.spread if eager else 0.0


def _latencies(eager: EagerPool | None, timed: Sequence[CellFigures], command: str) -> Iterator[Candidate]:
    """Time relative to eager calls of the same process, which meets what differs between processes in part."""
    if eager is not None:
        yield _eager(1.0, command, (1.0, 1.0))
    for cell in timed:
        verdict = cell.verdict
        # Calls that compiled say nothing of calls that do not.
        if verdict and verdict.speedup and verdict.ci95 and not cell.during_timing:
            low, high = verdict.ci95
            yield _candidate(cell, 1 / verdict.speedup, (1 / high, 1 / low))


def _judged(goal: Goal, calls: int | None, candidates: Sequence[Candidate], least: float) -> Best:
    # Where two are alike the first stays first: eager.
    ordered = tuple(sorted(candidates, key=lambda each: each.value))
    tied = tuple(number for number, each in enumerate(ordered) if not _behind(ordered[0], each, least))
    return Best(goal, calls, ordered, tied, least)


def _behind(best: Candidate, other: Candidate, least: float) -> bool:
    """Whether the other is clearly worse: its interval apart from the best one's, and farther than what is small."""
    apart = best.ci95 is None or other.ci95 is None or best.ci95[1] < other.ci95[0]
    return apart and other.value > best.value * (1 + least)


def _candidate(cell: CellFigures, value: float, ci95: tuple[float, float] | None = None) -> Candidate:
    asked = cell.cell.request
    return Candidate(cell.cell.key, asked.mode, asked.scope, value, ci95, cell.command)


def _eager(value: float, command: str, ci95: tuple[float, float] | None = None) -> Candidate:
    return Candidate(None, "eager", None, value, ci95, command)
