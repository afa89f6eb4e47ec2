"""Which of a work's cells differ from eager by more than chance, all of them taken together?

Another process must be expected to find the same: a cell alone is decided as the headline of a run is
(`next_process95`), several by Holm's procedure. How far processes differ the cells say themselves where two or more
were measured in several; else earlier works that wait for the host do, for without a recording nobody knows that a GPU
does not. On a CPU, and over several ranks, nobody measured it: there the chance is of what was timed.
"""

import math
from collections.abc import Sequence
from statistics import variance

from msgspec.structs import replace

from tracekit.comparison.judging.processes import next_within
from tracekit.comparison.judging.thresholds import FALSE_CELLS, NEXT_WAITING
from tracekit.model.comparison import Verdict
from tracekit.model.sweep_figures import CellFigures
from tracekit.statistics.chance import by_chance, holm
from tracekit.statistics.interval import NORMAL, t_quantile

#: Of the interval of one process, which is made of many rounds.
MANY = 1e6
#: By how much logarithms of speed-ups differ between processes, and its degrees of freedom.
Spread = tuple[float, int]


def judge_together(cells: Sequence[CellFigures]) -> tuple[CellFigures, ...]:
    """The cells of one work with their chances and what follows. Calls that compiled say nothing of those that do
    not."""
    tested = [cell for cell in cells if cell.verdict and cell.verdict.ci95 and not cell.during_timing]
    spread = find_spread(tested)
    verdicts = {cell.cell.key: _with_next(cell.verdict, spread) for cell in tested if cell.verdict}
    chances = dict(zip(verdicts, find_chances(list(verdicts.values()), spread), strict=True))
    found = (replace(cell, verdict=verdicts.get(cell.cell.key, cell.verdict)) for cell in cells)
    return tuple(_judged(cell, chances.get(cell.cell.key)) for cell in found)


def find_spread(cells: Sequence[CellFigures]) -> Spread | None:
    """How far processes differ, by all cells together; None where fewer than two were measured in several."""
    logs = [[math.log(each.speedup) for each in cell.processes if each.speedup] for cell in cells]
    several = [each for each in logs if len(each) > 1]
    if len(several) < 2:
        return None
    freedom = sum(len(each) - 1 for each in several)
    return math.sqrt(sum((len(each) - 1) * variance(each) for each in several) / freedom), freedom


def find_chances(verdicts: Sequence[Verdict], spread: Spread | None = None) -> list[float]:
    """Of each verdict that has an interval how likely so large a difference is where there is none, with Holm's
    correction for all of them."""
    return holm([2 * max(_in_what_was_timed(each, spread), _in_another_process(each, spread)) for each in verdicts])


def _in_what_was_timed(verdict: Verdict, spread: Spread | None) -> float:
    assert verdict.speedup is not None and verdict.ci95 is not None
    several = verdict.basis == "processes"
    if several and spread:
        return 0.0
    low, high = verdict.ci95
    freedom = (verdict.processes or 1) - 1.0 if several else MANY
    reach = math.log(verdict.speedup / low if verdict.speedup > 1 else high / verdict.speedup)
    return _tail(verdict.speedup, reach / (t_quantile(freedom) if several else NORMAL), freedom)


def _in_another_process(verdict: Verdict, spread: Spread | None) -> float:
    assert verdict.speedup is not None
    if verdict.next_process95 is None:
        return 0.0
    deviation, freedom = spread or NEXT_WAITING
    return _tail(verdict.speedup, deviation * math.sqrt(1 + 1 / (verdict.processes or 1)), freedom)


def _tail(speedup: float, error: float, freedom: float) -> float:
    change = abs(math.log(speedup))
    return by_chance(change / error, freedom) if error > 0 else float(change == 0)


def _with_next(verdict: Verdict, spread: Spread | None) -> Verdict:
    if spread is None or verdict.speedup is None or verdict.ci95 is None:
        return verdict
    return replace(verdict, next_process95=next_within(verdict.speedup, verdict.ci95, verdict.processes or 1, spread))


def _judged(cell: CellFigures, chance: float | None) -> CellFigures:
    if cell.verdict is None or cell.verdict.result == "not_timed":
        return cell
    beyond = chance is not None and chance <= FALSE_CELLS
    return replace(cell, chance=chance, result=cell.verdict.result if beyond else "inconclusive")
