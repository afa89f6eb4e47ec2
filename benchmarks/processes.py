"""How far do processes of the same work differ? What margins of gates and warnings stand on, in `processes.json`.

    python -m benchmarks.processes FIRST_SWEEP SECOND_SWEEP

writes it from two sweeps of one matrix, measured at two times: eager's median call in every process, and the speed-up
of every cell that has one both times. `settings`, timed by `tracekit profile` besides, stays as it is, and so does
`checked`: settings timed on an H100, in four processes each, after the rule for the next process was made of the
others. All others are of H200s, the sweeps of the vision suite, before and after forms were called where Python's
stack has room.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from itertools import chain, combinations
from pathlib import Path
from statistics import fmean, median, variance
from typing import Any

KEPT = Path(__file__).with_name("processes.json")
Work = tuple[str, int]


@cache
def kept() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return told


@cache
def eager_processes() -> dict[Work, list[list[float]]]:
    """By model and batch the logarithm of eager's median call in every process, by time."""
    return {
        (each["workload"], each["batch_size"]): [[math.log(us) for us in time] for time in each["eager_median_us"]]
        for each in kept()["works"]
    }


def longer_than(work: Work, batch: int) -> float:
    """How many times as long eager's call takes as with so many pictures."""
    one, other = (list(chain(*eager_processes()[each])) for each in (work, (work[0], batch)))
    return math.exp(fmean(one) - fmean(other))


def busy() -> Iterator[Work]:
    """Works whose call grows with the pictures: the GPU has no time to wait."""
    return (work for work in eager_processes() if work[1] > 1 and longer_than(work, work[1] // 4) >= 1.4)


def waiting() -> Iterator[Work]:
    """Works whose call hardly grows: it waits for the host."""
    some = set(busy())
    return (work for work in eager_processes() if work not in some and longer_than(work, 1) < 1.15)


def groups(works: Collection[Work]) -> list[list[float]]:
    """The processes that ran the same work at the same time."""
    return [each for work in works for each in eager_processes()[work] if len(each) > 1]


def deviation(some: list[list[float]]) -> float:
    """Of one process, pooled over groups of logarithms."""
    return math.sqrt(sum(variance(each) * (len(each) - 1) for each in some) / sum(len(each) - 1 for each in some))


def share_within(works: Collection[Work], margin: float) -> float:
    """Of all pairs of processes of one work and time."""
    apart = [abs(one - other) for each in groups(works) for one, other in combinations(each, 2)]
    return sum(each <= math.log1p(margin) for each in apart) / len(apart)


def collect(sweeps: tuple[Path, Path]) -> dict[str, Any]:
    """What was not run again has its processes with the later ones."""
    works: dict[Work, list[list[float]]] = defaultdict(lambda: [[], []])
    speedups: dict[str, dict[int, float]] = defaultdict(dict)
    asked: dict[str, dict[str, Any]] = {}
    for time, sweep in enumerate(sweeps):
        for place in sorted((sweep / "cells").glob("*.json")):
            cell = json.loads(place.read_text(encoding="utf-8"))
            request = cell["cell"]["request"]
            asked[cell["cell"]["key"]] = request
            forms = [form for form in (cell["run"] or {"forms": ()})["forms"] if form["times"]]
            for form in forms:
                if form["name"] == "eager":
                    works[request["workload"], request["batch_size"]][time].append(median(form["times"]["wall_us"]))
            if len(forms) == 2:
                rounds = zip(*(form["times"]["wall_us"] for form in forms), strict=True)
                speedups[cell["cell"]["key"]][time] = median(one / other for one, other in rounds)
    return {
        "works": [
            {"workload": name, "batch_size": batch, "eager_median_us": times}
            for (name, batch), times in sorted(works.items())
        ],
        "cells": [
            {key: asked[cell][key] for key in ("workload", "batch_size", "mode")} | {"speedups": [by[0], by[1]]}
            for cell, by in sorted(speedups.items())
            if len(by) == 2
        ],
    }


def main(first: Path, second: Path) -> None:
    found = collect((first, second))
    if KEPT.exists():
        found |= {name: kept()[name] for name in ("settings", "checked")}
    lines = [
        f' "{key}": [\n' + ",\n".join(f"  {json.dumps(each)}" for each in some) + "\n ]" for key, some in found.items()
    ]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
