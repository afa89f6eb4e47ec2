"""How often is a verdict right? Simulated machines, whose truth is known, timed and judged as real ones are.

    python -m benchmarks.verdicts --runs 1000

Prints the tables of docs/timing.md. The machines are those of tests/simulated.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.simulated import MACHINES, RULE, Noise, Random, simulate, steady

from tracekit.model.timing import StoppingRule

#: No difference, one too small to be called one, and one that is to be found.
SPEEDUPS = (1.0, 1.003, 1.03)
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
        verdict, warnings = simulate(machine, speedup, seed, **how)  # type: ignore[arg-type]
        if verdict.ci95 is None:
            raise AssertionError("a simulated run makes calls enough")
        low, high = verdict.ci95
        found.covered += low <= speedup <= high
        found.faster += verdict.result == "faster"
        found.slower += verdict.result == "slower"
        found.rounds += verdict.n or 0
        found.width += high - low
        found.warned += any("two speeds" in each or "drifted" in each for each in warnings)
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


TABLES = {"adaptive": adaptive, "fixed": fixed, "processes": processes}


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
