"""Ranks in lockstep: how often is a form called different from itself, and what does the lockstep cost?

    torchrun --nproc-per-node 2 -m benchmarks.ranks_aa [--trials 20] [--json PATH]

Both "forms" are one and the same training step of FSDP2. A call's time in lockstep is held against that of the same
calls made one after another without it, in turns. Rank 0 prints.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tests.simulated import judged

from benchmarks.planted_ranks import Job
from tracekit.job.lockstep import Lockstep, joined
from tracekit.measure.device import synchronize
from tracekit.measure.forms import Form
from tracekit.measure.timing import Timings, time_forms, time_one
from tracekit.model.progress import Silent
from tracekit.model.timing import StoppingRule

#: Calls of a turn, and how many turns each way has.
CALLS, TURNS = 20, 6


def without_lockstep_us(call: Callable[[], object], device: str) -> float:
    """The median of some calls by this rank's clock, each ended by a synchronisation."""
    found = []
    for _ in range(CALLS):
        began_ns = time.perf_counter_ns()
        call()
        synchronize(device)
        found.append((time.perf_counter_ns() - began_ns) / 1e3)
    return median(found)


def cost(form: Form, ranks: Lockstep) -> dict[str, list[float]]:
    """Medians of both ways, a value each turn."""
    found: dict[str, list[float]] = {"lockstep_us": [], "plain_us": []}
    for _ in range(TURNS):
        found["lockstep_us"].append(median(time_one(form, ranks=ranks).wall_us for _ in range(CALLS)))
        ranks.begin()
        found["plain_us"].append(ranks.most(without_lockstep_us(form.call, form.device))[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3.0, help="budget of each trial")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rule = StoppingRule(rounds=None, target=0.01, budget_seconds=asked.seconds, least=20)
    with joined(60) as ranks:
        job = Job("fsdp2", "eager", asked.width)

        def step() -> None:
            job.step(lambda data: data)

        a, b = (Form(name, job.device.type, step) for name in ("eager", "compiled"))
        for _ in range(5):
            time_one(a, ranks=ranks)
        verdicts = []
        for seed in range(asked.trials):
            timings = Timings()
            time_forms((a, b), rule, seed, timings, Silent(), ranks=ranks)
            verdict, _ = judged([timings], rule)
            verdicts.append({"result": verdict.result, "ci95": verdict.ci95, "rounds": verdict.n})
        told = {"world": ranks.size, "trials": verdicts, **cost(a, ranks)}
        if ranks.rank == 0:
            if asked.json:
                asked.json.write_text(json.dumps(told))
            results = Counter(each["result"] for each in verdicts)
            ratios = [a / b for a, b in zip(told["lockstep_us"], told["plain_us"], strict=True)]
            sys.stdout.write(f"{dict(results)}; in lockstep {median(ratios):.3f} times as long as without\n")
            sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
