"""What gate.md says of how processes differ is what the committed sweeps say, and what the code assumes."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from itertools import chain, combinations
from statistics import fmean, median, variance

import pytest

from tracekit.comparison.ranges import PROCESS_FLOOR, PROCESS_FLOOR_WAITING

from .texts import ROOT

Work = tuple[str, int]
#: The two times that the vision suite was run: processes of one time are compared.
EARLIER, LATER = (ROOT / "sweeps" / name for name in ("earlier-h200-vision", "h200-vision"))


@cache
def eager_processes() -> dict[Work, list[list[float]]]:
    """By model and batch the logarithm of eager's median call in every process of the vision suite, by time. What was
    not run again lies with the later ones."""
    found: dict[Work, list[list[float]]] = defaultdict(lambda: [[], []])
    for time, sweep in enumerate((EARLIER, LATER)):
        for place in (sweep / "cells").glob("*.json"):
            cell = json.loads(place.read_text())
            asked = cell["cell"]["request"]
            for form in cell["run"]["forms"] if cell["run"] else ():
                if form["name"] == "eager" and form["times"]:
                    calls = form["times"]["wall_us"]
                    found[asked["workload"], asked["batch_size"]][time].append(math.log(median(calls)))
    return dict(found)


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


def deviation(works: Collection[Work]) -> float:
    """Of one process's median, pooled over works and times."""
    found = groups(works)
    return math.sqrt(sum(variance(each) * (len(each) - 1) for each in found) / sum(len(each) - 1 for each in found))


def share_within(works: Collection[Work], margin: float) -> float:
    """Of all pairs of processes of one work and time."""
    apart = [abs(one - other) for each in groups(works) for one, other in combinations(each, 2)]
    return sum(each <= math.log1p(margin) for each in apart) / len(apart)


def test_processes_that_keep_the_gpu_busy_differ_as_is_assumed() -> None:
    works = list(busy())
    assert (len(works), deviation(works)) == (8, pytest.approx(0.0086, abs=0.00005))
    assert 1.96 * math.sqrt(2) * deviation(works) == pytest.approx(PROCESS_FLOOR, abs=0.0005)
    assert share_within(works, PROCESS_FLOOR) == pytest.approx(0.93, abs=0.005)


def test_processes_that_wait_for_the_host_differ_as_is_assumed() -> None:
    works = list(waiting())
    assert (len(works), deviation(works)) == (22, pytest.approx(0.069, abs=0.0005))
    assert 1.96 * deviation(works) == pytest.approx(PROCESS_FLOOR_WAITING, abs=0.001)
    assert share_within(works, math.sqrt(2) * PROCESS_FLOOR_WAITING) == pytest.approx(0.93, abs=0.005)
