"""What gate.md says of how processes differ is what the committed sweep says, and what the code assumes."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from statistics import fmean, median, variance

import pytest

from tracekit.comparison.ranges import PROCESS_FLOOR, PROCESS_FLOOR_WAITING

from .texts import ROOT

Work = tuple[str, int]


@cache
def eager_processes() -> dict[Work, list[float]]:
    """By model and batch the logarithm of eager's median call in every process of the vision suite."""
    found: dict[Work, list[float]] = defaultdict(list)
    for place in (ROOT / "sweeps/h200-vision/cells").glob("*.json"):
        cell = json.loads(place.read_text())
        asked = cell["cell"]["request"]
        for form in cell["run"]["forms"] if cell["run"] else ():
            if form["name"] == "eager" and form["times"]:
                calls = form["times"]["wall_us"]
                found[asked["workload"], asked["batch_size"]].append(math.log(median(calls)))
    return {work: medians for work, medians in found.items() if len(medians) > 1}


def longer_than(work: Work, batch: int) -> float:
    """How many times as long eager's call takes as with so many pictures."""
    of = eager_processes()
    return math.exp(fmean(of[work]) - fmean(of[work[0], batch]))


def busy() -> Iterator[Work]:
    """Works whose call grows with the pictures: the GPU has no time to wait."""
    return (work for work in eager_processes() if work[1] > 1 and longer_than(work, work[1] // 4) >= 1.4)


def waiting() -> Iterator[Work]:
    """Works whose call hardly grows: it waits for the host."""
    some = set(busy())
    return (work for work in eager_processes() if work not in some and longer_than(work, 1) < 1.15)


def deviation(works: Collection[Work]) -> float:
    """Of one process's median, pooled over works."""
    groups = [eager_processes()[work] for work in works]
    return math.sqrt(sum(variance(each) * (len(each) - 1) for each in groups) / sum(len(each) - 1 for each in groups))


def test_processes_that_keep_the_gpu_busy_differ_as_is_assumed() -> None:
    works = list(busy())
    assert (len(works), deviation(works)) == (9, pytest.approx(0.008, abs=0.0005))
    assert 1.96 * math.sqrt(2) * deviation(works) == pytest.approx(PROCESS_FLOOR, abs=0.002)


def test_processes_that_wait_for_the_host_differ_as_is_assumed() -> None:
    works = list(waiting())
    assert (len(works), deviation(works)) == (22, pytest.approx(0.049, abs=0.0006))
    assert 1.96 * deviation(works) == pytest.approx(PROCESS_FLOOR_WAITING, abs=0.006)
