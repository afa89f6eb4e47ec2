"""Which of a work's cells differ from eager by more than chance, all of them taken together?

Holm's procedure over the cells. On a GPU another process must be expected to find the same: a cell alone is decided as
the headline of a run (`next_process95`). On a CPU, and over several ranks, nobody measured how processes differ: there
the chance is of what was timed.
"""

import math
from collections.abc import Sequence

from msgspec.structs import replace

from tracekit.comparison.judging.processes import next_deviation
from tracekit.comparison.judging.thresholds import FALSE_CELLS
from tracekit.model.comparison import Verdict
from tracekit.model.sweep_figures import CellFigures
from tracekit.statistics.chance import by_chance, holm
from tracekit.statistics.interval import NORMAL, t_quantile

#: Of the interval of one process, which is made of many rounds.
MANY = 1e6


def judge_together(cells: Sequence[CellFigures]) -> tuple[CellFigures, ...]:
    """The cells of one work with their chances and what follows. Calls that compiled say nothing of those that do
    not."""
    tested = {
        cell.cell.key: cell.verdict for cell in cells if cell.verdict and cell.verdict.ci95 and not cell.during_timing
    }
    chances = dict(zip(tested, find_chances(list(tested.values())), strict=True))
    return tuple(_judged(cell, chances.get(cell.cell.key)) for cell in cells)


def find_chances(verdicts: Sequence[Verdict]) -> list[float]:
    """Of each verdict that has an interval how likely so large a difference is where there is none, with Holm's
    correction for all of them."""
    return holm([2 * max(_in_what_was_timed(each), _in_another_process(each)) for each in verdicts])


def _in_what_was_timed(verdict: Verdict) -> float:
    assert verdict.speedup is not None and verdict.ci95 is not None
    low, high = verdict.ci95
    freedom = (verdict.processes or 1) - 1.0 if verdict.basis == "processes" else MANY
    reach = math.log(verdict.speedup / low if verdict.speedup > 1 else high / verdict.speedup)
    error = reach / (t_quantile(freedom) if freedom < MANY else NORMAL)
    return _tail(verdict.speedup, error, freedom)


def _in_another_process(verdict: Verdict) -> float:
    assert verdict.speedup is not None
    if verdict.next_process95 is None:
        return 0.0
    # A cell is not recorded: how long its GPU waits nobody knows.
    return _tail(verdict.speedup, *next_deviation(verdict.processes or 1, (None,)))


def _tail(speedup: float, error: float, freedom: float) -> float:
    change = abs(math.log(speedup))
    return by_chance(change / error, freedom) if error > 0 else float(change == 0)


def _judged(cell: CellFigures, chance: float | None) -> CellFigures:
    if cell.verdict is None or cell.verdict.result == "not_timed":
        return cell
    beyond = chance is not None and chance <= FALSE_CELLS
    return replace(cell, chance=chance, result=cell.verdict.result if beyond else "inconclusive")
