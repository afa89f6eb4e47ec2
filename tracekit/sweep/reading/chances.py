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
from tracekit.comparison.judging.thresholds import NEXT_WAITING
from tracekit.model.comparison import Verdict
from tracekit.model.estimate import Estimate, compare_estimates, exactly
from tracekit.statistics.chance import by_chance, holm
from tracekit.statistics.interval import NORMAL, t_quantile
from tracekit.sweep.figures import CellFigures

#: In this share of a sweep's works, none of whose cells differs from eager, one is called faster or slower: as usual.
FALSE_CELLS = 0.05
#: Of the interval of one process, which is made of many rounds.
MANY = 1e6
#: By how much logarithms of speed-ups differ between processes, and its degrees of freedom.
Spread = tuple[float, int]


def judge_together(cells: Sequence[CellFigures]) -> tuple[CellFigures, ...]:
    """The cells of one work with their chances and what follows. Calls that compiled say nothing of those that do
    not."""
    tested = {
        cell.cell.key: cell.verdict
        for cell in cells
        if cell.verdict and cell.verdict.ci95 and cell.verdict.speedup and not cell.during_timing
    }
    spread = _find_spread([cell for cell in cells if cell.cell.key in tested])
    verdicts = {key: _by_spread(each, spread) if spread else each for key, each in tested.items()}
    chances = dict(zip(verdicts, holm([_find_chance(each, spread) for each in verdicts.values()]), strict=True))
    judged = []
    for cell in cells:
        verdict, chance = verdicts.get(cell.cell.key, cell.verdict), chances.get(cell.cell.key)
        if verdict and verdict.result != "not_timed":
            result = verdict.result if chance is not None and chance <= FALSE_CELLS else "inconclusive"
            judged.append(replace(cell, verdict=verdict, chance=chance, result=result))
        else:
            judged.append(cell)
    return tuple(judged)


def _find_spread(cells: Sequence[CellFigures]) -> Spread | None:
    """How far processes differ, by all cells together; None where fewer than two were measured in several."""
    logs = [[math.log(each.speedup) for each in cell.processes if each.speedup] for cell in cells]
    several = [each for each in logs if len(each) > 1]
    if len(several) < 2:
        return None
    freedom = sum(len(each) - 1 for each in several)
    return math.sqrt(sum((len(each) - 1) * variance(each) for each in several) / freedom), freedom


def _by_spread(verdict: Verdict, spread: Spread) -> Verdict:
    """The verdict on several processes, by how far those of all cells differ: a cell's own two or four say little of
    it. One process stays as it is: nobody knows that its mode differs as little."""
    if verdict.basis != "processes" or verdict.speedup is None:
        return verdict
    processes = verdict.processes or 1
    apart = math.exp(t_quantile(spread[1]) * spread[0] / math.sqrt(processes))
    ci95 = verdict.speedup / apart, verdict.speedup * apart
    least = max(verdict.noise_floor or 0.0, verdict.least_change or 0.0)
    order = compare_estimates(Estimate(verdict.speedup, *ci95), exactly(1.0), least)
    return replace(
        verdict,
        result="faster" if order == "larger" else "slower" if order == "smaller" else "inconclusive",
        ci95=ci95,
        next_process95=next_within(verdict.speedup, ci95, processes, spread),
    )


def _find_chance(verdict: Verdict, spread: Spread | None) -> float:
    """How likely so large a difference is where there is none: the larger of what was timed and of another process."""
    assert verdict.speedup is not None and verdict.ci95 is not None
    several, processes = verdict.basis == "processes", verdict.processes or 1
    low, high = verdict.ci95
    reach = math.log(verdict.speedup / low if verdict.speedup > 1 else high / verdict.speedup)
    own = spread[1] if spread and several else processes - 1 if several else MANY
    chances = [_tail(verdict.speedup, reach / (t_quantile(own) if several else NORMAL), own)]
    if verdict.next_process95 is not None:
        deviation, freedom = spread if spread and several else NEXT_WAITING
        chances.append(_tail(verdict.speedup, deviation * math.sqrt(1 + 1 / processes), freedom))
    return 2 * max(chances)


def _tail(speedup: float, error: float, freedom: float) -> float:
    """The probability of a change at least as far to its side, of so large a standard error."""
    change = abs(math.log(speedup))
    return by_chance(change / error, freedom) if error > 0 else float(change == 0)
