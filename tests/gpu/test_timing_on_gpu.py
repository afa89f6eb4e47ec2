"""Timing and starting up on a real GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gpu.profiled import profile_in_a_process

from tracekit.comparison import compare
from tracekit.walks.sides import load_side


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    options = ["--compiled", "--startup", "--repeat-process", "2", "--time-budget", "10", "--no-provenance"]
    return profile_in_a_process(tmp_path_factory.mktemp("timing"), "vit", *options)


def test_both_clocks_are_kept_for_every_call_controls_and_repeats_too(measured: tuple[Path, Any]) -> None:
    for form in measured[1].forms:
        assert all(each.device_us is not None for each in form.timing.controls)
        for each in (form, *form.timing.processes):
            assert len(each.device_us) == len(each.wall_us)
        assert form.timing.stopped in ("target reached", "budget spent", "most rounds")
        assert all(device <= wall * 1.05 for device, wall in zip(form.device_us, form.wall_us, strict=True))


def test_the_cold_start_finds_no_cache_and_the_warm_one_finds_it_all(measured: tuple[Path, Any]) -> None:
    cold, warm = measured[1].form("compiled").startups
    assert cold.cache_hits == 0
    assert warm.cache_hits == warm.graphs
    assert warm.calls_us[0] < cold.calls_us[0]


def test_the_verdict_rests_on_three_processes(measured: tuple[Path, Any]) -> None:
    folder, run = measured
    comparison = compare(load_side(folder, form="eager"), load_side(folder, form="compiled"), run.order)
    assert comparison.verdict.basis == "processes"
    assert comparison.verdict.processes == 3
    assert [each.kind for each in comparison.break_even] == ["compiled_no_cache", "compiled_warm_cache"]


def test_the_runs_own_process_is_not_slower_than_others(measured: tuple[Path, Any]) -> None:
    """CUPTI in it before its calls were timed made eager ViT 19 % slower."""
    eager = measured[1].form("eager")
    others = [float(np.median(each.wall_us)) for each in eager.timing.processes]
    assert float(np.median(eager.wall_us)) < 1.12 * max(others)
