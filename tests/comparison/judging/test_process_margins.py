"""The margins that gates and warnings assume for other processes are what processes were measured to differ by."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.processes import busy, collect, deviation, groups, kept, settings, share_within, waiting
from tracekit.comparison.judging.one_process import LARGE, LARGE_WAITING, WAITING_DIFFERS, WAITING_SHARE
from tracekit.comparison.judging.ranges import PROCESS_FLOOR, PROCESS_FLOOR_WAITING

SWEEP = Path(__file__).parents[3] / "sweeps" / "h200-qwen2.5-vl"


def test_processes_that_keep_the_gpu_busy_differ_as_is_assumed() -> None:
    works = list(busy())
    apart = deviation(groups(works))
    assert (len(works), apart) == (8, pytest.approx(0.0086, abs=0.00005))
    assert 1.96 * math.sqrt(2) * apart == pytest.approx(PROCESS_FLOOR, abs=0.0005)
    assert share_within(works, PROCESS_FLOOR) == pytest.approx(0.93, abs=0.005)


def test_processes_that_wait_for_the_host_differ_as_is_assumed() -> None:
    works = list(waiting())
    apart = deviation(groups(works))
    assert (len(works), apart) == (22, pytest.approx(0.069, abs=0.0005))
    assert 1.96 * apart == pytest.approx(PROCESS_FLOOR_WAITING, abs=0.001)
    assert share_within(works, math.sqrt(2) * PROCESS_FLOOR_WAITING) == pytest.approx(0.93, abs=0.005)


def test_settings_that_were_timed_again_keep_to_the_bounds_of_the_warnings() -> None:
    some = [each for each in settings() if max(each.idle_shares) >= WAITING_SHARE]
    others = [each for each in settings() if max(each.idle_shares) < WAITING_SHARE]
    assert (len(some), len(others)) == (16, 2)
    assert min(max(each.idle_shares) for each in some) == 0.52
    assert max(each.ratio for each in others) < 1 + LARGE < max(each.ratio for each in some) < 1 + LARGE_WAITING
    assert deviation([[math.log(speedup) for speedup in each.found] for each in some]) == pytest.approx(
        0.0575, abs=5e-4
    )


def test_cells_that_were_measured_twice_keep_to_the_bounds_of_the_warnings() -> None:
    # BEiT's were apart by what Python's stack did to the earlier ones.
    cells = [each for each in kept()["cells"] if each["workload"] != "beit"]
    ratios = [max(each["speedups"]) / min(each["speedups"]) for each in cells]
    assert len(ratios) == 44
    assert max(ratios) - 1 == pytest.approx(WAITING_DIFFERS, abs=0.006) and max(ratios) < 1 + LARGE_WAITING
    some = set(waiting())
    waited = [
        ratio for each, ratio in zip(cells, ratios, strict=True) if (each["workload"], each["batch_size"]) in some
    ]
    apart = math.sqrt(sum(math.log(ratio) ** 2 for ratio in waited) / len(waited) / 2)
    assert (len(waited), apart) == (34, pytest.approx(0.059, abs=0.0005))
    assert math.log1p(LARGE_WAITING) / apart / math.sqrt(2) == pytest.approx(4.0, abs=0.05)


def test_what_is_kept_of_a_sweep_are_eager_s_medians_and_speed_ups_by_time() -> None:
    found = collect((SWEEP, SWEEP))
    (work,) = found["works"]
    assert (work["workload"], work["batch_size"]) == ("qwen2.5-vl", 3)
    first, second = work["eager_median_us"]
    assert first == second and len(first) == 6
    assert 28_757 < min(each for each in first if each > 28_000) < 28_759
    decode = [each["speedups"] for each in found["cells"] if each["mode"] == "reduce-overhead"]
    assert all(one == other for one, other in decode) and min(one for one, _ in decode) == pytest.approx(
        4.837, abs=1e-3
    )
