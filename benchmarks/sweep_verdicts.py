"""How often is a sweep right? Works whose truth is known, judged by the sweep's own rules.

    python -m benchmarks.sweep_verdicts --trials 2000 --out results/planted-sweeps.json

The speed-up of a process is the true one times an offset of its own, drawn here: by a normal distribution, or Student's
t with 4 degrees of freedom of the same deviation, which the rules know nothing of. `before` is what a cell's own
verdict says, and the figure of the mode that reads best, as sweeps were told until 28 November 2026.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from tests.sweep.sweeps import compiled_cell, make_result

from tracekit.comparison.judging.processes import next_speedup95
from tracekit.comparison.judging.thresholds import ENOUGH_PROCESSES, LEAST_IN_ONE_PROCESS, LEAST_IN_SEVERAL
from tracekit.model.comparison import Verdict
from tracekit.model.estimate import Estimate, compare_estimates, exactly
from tracekit.statistics.interval import NORMAL, Interval, interval_of_processes
from tracekit.sweep.figures import CellFigures
from tracekit.sweep.reading.best import find_best
from tracekit.sweep.reading.cell_figures import read_cell
from tracekit.sweep.reading.chances import judge_together

#: By name: the offset's deviation, and degrees of freedom of Student's t (none: normal).
PROCESSES = {"host-bound": (0.0575, None), "host-bound, t of 4": (0.0575, 4), "GPU-bound": (0.0134, None)}
#: Half of the interval within a process.
WITHIN = 0.003
TEMPLATE = read_cell((make_result(compiled_cell()),), 1)


def draw(random: np.random.Generator, kind: str, size: tuple[int, ...]) -> np.ndarray:
    """Offsets of processes, as logarithms, with what the calls of one are off by."""
    deviation, freedom = PROCESSES[kind]
    if freedom:
        offsets = random.standard_t(freedom, size) * deviation / math.sqrt(freedom / (freedom - 2))
    else:
        offsets = random.normal(0, deviation, size)
    return offsets + random.normal(0, WITHIN / NORMAL, size)


def judge(speedups: np.ndarray) -> Verdict:
    """The verdict on a cell whose processes say so, logarithms: as `comparison/judging/verdict.py` has it."""
    within = tuple(Interval(each, each - WITHIN, each + WITHIN, 1) for each in map(float, speedups))
    pooled = within[0] if len(within) == 1 else interval_of_processes(within)
    speedup, low, high = map(math.exp, (pooled.middle, pooled.low, pooled.high))
    least = LEAST_IN_SEVERAL if len(within) >= ENOUGH_PROCESSES else LEAST_IN_ONE_PROCESS
    order = compare_estimates(Estimate(speedup, low, high), exactly(1.0), least)
    return Verdict(
        "faster" if order == "larger" else "slower" if order == "smaller" else "inconclusive",
        speedup,
        (low, high),
        processes=len(within),
        basis="rounds" if len(within) == 1 else "processes",
        least_change=least,
        next_process95=next_speedup95(speedup, (low, high), len(within), (None,)),
    )


def work(speedups: np.ndarray) -> tuple[CellFigures, ...]:
    """A row of cells, judged together; each has a row of processes."""
    cells = []
    for at, each in enumerate(speedups):
        processes = tuple(replace(TEMPLATE.processes[0], speedup=math.exp(log)) for log in each)
        cell = replace(TEMPLATE.cell, key=str(at))
        cells.append(replace(TEMPLATE, cell=cell, verdict=judge(each), processes=processes))
    return judge_together(cells)


def trial(truths: Sequence[float], kind: str, processes: int, trials: int) -> dict[str, float | None]:
    """Shares of the trials, and by how much the figure that chose the best reads too high on average."""
    random, logs = np.random.default_rng(0), np.log(truths)
    false, before_false, found, held, named = 0, 0, 0, 0, 0
    before = []
    for _ in range(trials):
        cells = work(logs[:, np.newaxis] + draw(random, kind, (len(truths), processes)))
        wrong = [cell for cell, truth in zip(cells, truths, strict=True) if truth == 1 and cell.verdict]
        false += any(cell.result != "inconclusive" for cell in wrong)
        before_false += any(cell.verdict and cell.verdict.result != "inconclusive" for cell in wrong)
        found += sum(cell.result == "faster" for cell, truth in zip(cells, truths, strict=True) if truth > 1)
        read = [math.log(cell.verdict.speedup or 1.0) if cell.verdict else 0.0 for cell in cells]
        first = int(np.argmax(read))
        before.append(read[first] - logs[first])
        chosen = cells[first].verdict
        held += bool(chosen and chosen.ci95 and chosen.ci95[0] <= truths[first] <= chosen.ci95[1])
        latency = next((each for each in find_best(None, cells, 1000, "") if each.goal == "latency"), None)
        named += bool(latency and latency.to_confirm)
    found_of_faster = found / trials / sum(truth > 1 for truth in truths) if max(truths) > 1 else None
    told = {
        "some_called_falsely": false / trials,
        "before_some_called_falsely": before_false / trials,
        "found_of_faster": found_of_faster,
        "best_named": named / trials,
        "before_best_reads_high_by": math.expm1(float(np.mean(before))),
        "before_best_interval_holds": held / trials,
    }
    return {key: None if value is None else round(value, 4) for key, value in told.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows: list[dict[str, object]] = []
    for kind, processes in product(PROCESSES, (1, 4)):
        for modes in (2, 8, 20):
            plants = {"1.00": [1.0] * modes, "1.20": [1.2] * modes, "one of 1.50": [1.5] + [1.0] * (modes - 1)}
            for name, truths in plants.items():
                row = {"differ": kind, "processes": processes, "modes": modes, "true": name}
                rows.append(row | trial(truths, kind, processes, asked.trials))
                sys.stdout.write(f"{json.dumps(rows[-1])}\n")
    if asked.out:
        asked.out.write_text(compact(rows, asked.trials), encoding="utf-8")


def compact(rows: list[dict[str, object]], trials: int) -> str:
    """As `results/` has it: the columns once, a row a line."""
    lines = ",\n".join(f"  {json.dumps([*row.values()])}" for row in rows)
    return f'{{\n "trials": {trials},\n "columns": {json.dumps([*rows[0]])},\n "works": [\n{lines}\n ]\n}}\n'


if __name__ == "__main__":
    main()
