"""How often is a gate between two runs right? Simulated runs of equal code, judged as real ones are.

    python -m benchmarks.gates --runs 300

Prints the table of docs/gate.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from tests.sides import make_analysis, make_form, make_side

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.model.comparison import Side
from tracekit.model.timing import FormTiming, ProcessTimes

#: How many processes A and B have, and by which standard deviation they differ.
ROWS = (
    *((number, number, offset) for number in (1, 3, 5) for offset in (0.005, 0.01, 0.03)),
    *((5, 1, offset) for offset in (0.01, 0.03)),
)
CALLS, CALL_US, NOISE = 20, 1000.0, 0.01
#: The GPU has work for all of the call.
BUSY = make_analysis({"gemm": ("gemm", 20, 2000.0)}, idle_us=0.0)
CONDITIONS = parse_conditions("wall<=+0%,wall<=+3%")
HEAD = (
    "processes of A, of B | they differ by | interval holds the truth, % | fails `wall<=+0%`, % | passes `wall<=+3%`, %"
    " | ± %"
)


@dataclass
class Tally:
    """What became of many pairs of runs."""

    runs: int = 0
    covered: int = 0
    failed: int = 0
    passed: int = 0
    width: float = 0.0

    def row(self) -> str:
        covered, failed, passed = (f"{each / self.runs * 100:.1f}" for each in (self.covered, self.failed, self.passed))
        return f"{covered} | {failed} | {passed} | {self.width / self.runs / 2 * 100:.2f}"


def simulated_side(name: str, processes: int, offset: float, random: np.random.Generator) -> Side:
    """A run of so many processes, each off by a constant."""

    def calls() -> tuple[float, ...]:
        logarithms = random.normal(0, offset) + random.normal(0, NOISE, CALLS)
        return tuple(CALL_US * np.exp(logarithms))

    own, *others = (calls() for _ in range(processes))
    repeats = tuple(ProcessTimes(each, None, (), "asked number", 1.0) for each in others)
    form = replace(make_form("compiled", own), timing=FormTiming("asked number", None, None, 1.0, (), repeats))
    return replace(make_side(name, BUSY, form), path=f"traces/{name}/compiled.json.gz")


def tally(base: int, new: int, offset: float, runs: int) -> Tally:
    found = Tally(runs)
    for seed in range(runs):
        random = np.random.default_rng(seed)
        sides = (simulated_side(name, number, offset, random) for name, number in (("base", base), ("new", new)))
        none, some = check(compare(*sides), CONDITIONS).checked
        if some.low is None or some.high is None:
            raise AssertionError("a simulated run makes calls enough")
        found.covered += some.low <= 0 <= some.high
        found.failed += none.outcome == "fail"
        found.passed += some.outcome == "pass"
        found.width += some.high - some.low
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300, help="simulated pairs of runs a row")
    asked = parser.parse_args()
    print(f"| {HEAD} |\n|---|--:|--:|--:|--:|--:|")  # noqa: T201
    for base, new, offset in ROWS:
        print(f"| {base}, {new} | {offset * 100:g} % | {tally(base, new, offset, asked.runs).row()} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
