"""How often is a verdict right? Simulated machines, whose truth is known, timed and judged as real ones are.

    python -m benchmarks.verdicts --runs 1000

Prints the tables of docs/timing.md. The machines are those of tests/simulated.py.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.simulated import EAGER_US, LASTING, MACHINES, PASSING, RULE, Noise, Random, simulate, steady

from tracekit.model.timing import StoppingRule

#: No difference, one too small to be called one, and one that is to be found.
SPEEDUPS = (1.0, 1.003, 1.03)
ROUNDS = (5, 10, 20, 50, 100, 300, 1000)
#: Of the compiled form: one timed, a control in every fourth round, and what is called untimed before.
CALLS_A_ROUND = 2.0
#: Of fewer stays than this no rule within one process knows the mean.
FEWEST_STAYS = 5
FIXED = StoppingRule(rounds=20, target=0.01, budget_seconds=3.0, least=20)


@dataclass
class Tally:
    """What became of many runs of one machine."""

    runs: int = 0
    covered: int = 0
    faster: int = 0
    slower: int = 0
    rounds: int = 0
    width: float = 0.0
    warned: int = 0

    def row(self) -> str:
        shares = (self.covered, self.faster, self.slower, self.warned)
        covered, faster, slower, warned = (f"{each / self.runs * 100:.1f}" for each in shares)
        half = self.width / self.runs / 2 * 100
        return f"{covered} | {faster} | {slower} | {self.rounds / self.runs:.0f} | {half:.2f} | {warned}"


def tally(machine: Callable[[Random], Noise], speedup: float, runs: int, **how: object) -> Tally:
    found = Tally(runs)
    for seed in range(runs):
        verdict, notes = simulate(machine, speedup, seed, **how)  # type: ignore[arg-type]
        if verdict.ci95 is None:
            raise AssertionError("a simulated run makes calls enough")
        low, high = verdict.ci95
        found.covered += low <= speedup <= high
        found.faster += verdict.result == "faster"
        found.slower += verdict.result == "slower"
        found.rounds += verdict.n or 0
        found.width += high - low
        found.warned += any(each.code in ("two_speeds", "drifted") for each in notes)
    return found


HEAD = "true speed-up | interval holds it, % | faster, % | slower, % | rounds | ± % | said restless, %"
RULED = "|---|--:|--:|--:|--:|--:|--:|--:|"


def adaptive(runs: int) -> Iterator[str]:
    """Each machine, timed until the interval is narrow."""
    yield from _machines(runs, RULE)


def fixed(runs: int) -> Iterator[str]:
    """Each machine, timed for 20 rounds."""
    yield from _machines(runs, FIXED)


def _machines(runs: int, rule: StoppingRule) -> Iterator[str]:
    yield f"| machine | {HEAD} |\n{RULED}"
    for name, machine in MACHINES.items():
        for speedup in SPEEDUPS:
            yield f"| {name} | {speedup:g} | {tally(machine, speedup, runs, rule=rule).row()} |"


def processes(runs: int) -> Iterator[str]:
    """A steady machine, on which the speed of each form differs from one process to the next."""
    yield f"| processes, and how much they differ | {HEAD} |\n{RULED}"
    for offset in (0.005, 0.01, 0.03):
        for number in (1, 3, 5):
            for speedup in (1.0, 1.03):
                found = tally(steady, speedup, runs, processes=number, offset=offset, rule=FIXED)
                yield f"| {number}, {offset * 100:g} % | {speedup:g} | {found.row()} |"


def lasting(runs: int) -> Iterator[str]:
    """What lasts for many calls, by how many rounds were timed, with the number of stays in a run: whether one process
    can know at all. Of that which does not last, and of clocks with steps, too."""
    yield "| machine | rounds | stays | interval holds 1, % | called different, % | 1.03 found, % | ± % | stretches |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    machines: list[tuple[str, Callable[[Random], Noise], float | None, float]] = [
        *((name, machine, calls, 0.0) for name, (machine, calls) in LASTING.items()),
        *((name, machine, None, 0.0) for name, machine in PASSING.items()),
        *((f"noise of 1 %, clock of {tick:.0%} of a call", steady, None, tick * EAGER_US) for tick in (0.02, 0.1)),
    ]
    for name, machine, calls, tick_us in machines:
        for rounds in ROUNDS:
            stays = rounds * CALLS_A_ROUND / calls if calls else None
            yield f"| {name} | {rounds:,} | {_stays(stays)} | {_lasting(machine, rounds, runs, tick_us)} |"


def _stays(stays: float | None) -> str:
    if stays is None:
        return ""
    return f"{stays:.1f}" if stays >= FEWEST_STAYS else f"{stays:.1f}, cannot know"


def _lasting(machine: Callable[[Random], Noise], rounds: int, runs: int, tick_us: float) -> str:
    rule = StoppingRule(rounds=rounds, target=0.01, budget_seconds=3.0, least=20)
    same, gain = (
        [simulate(machine, speedup, seed, rule=rule, tick_us=tick_us)[0] for seed in range(runs)]
        for speedup in (1.0, 1.03)
    )
    ends = [each.ci95 for each in same if each.ci95]
    held = sum(low <= 1 <= high for low, high in ends)
    different = sum(each.result != "inconclusive" for each in same)
    found = sum(each.result == "faster" for each in gain)
    half = statistics.median((high - low) / 2 for low, high in ends)
    stretches = statistics.median(each.stretches or math.nan for each in same)
    shares = (f"{each / runs * 100:.1f}" for each in (held, different, found))
    return f"{' | '.join(shares)} | {half * 100:.2f} | {stretches:.0f}"


TABLES = {"adaptive": adaptive, "fixed": fixed, "processes": processes, "lasting": lasting}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs a row")
    parser.add_argument("--table", choices=TABLES, action="append", help="only this one")
    asked = parser.parse_args()
    for name in asked.table or TABLES:
        for line in TABLES[name](asked.runs):
            print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
