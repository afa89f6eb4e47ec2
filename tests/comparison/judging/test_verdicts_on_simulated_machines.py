"""Whole timings of machines whose truth is known: a smaller edition of `python -m benchmarks.verdicts`."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.simulated import (
    AFTER_ANOTHER,
    EAGER_US,
    MACHINES,
    RULE,
    heavy_tails,
    own_clocks,
    simulate,
    steady,
    two_clocks,
)

from tracekit.model.timing import StoppingRule

FIXED = StoppingRule(rounds=20, target=0.01, budget_seconds=3.0, least=20)
RUNS = 60
#: Machines whose forms are moved by the same things, or by nothing that lasts.
PLAIN = [name for name in MACHINES if name not in ("memory of each form", "two speeds of each form")]


@pytest.mark.parametrize("name", PLAIN)
def test_equal_forms_are_inconclusive_and_the_interval_holds_the_truth(name: str) -> None:
    verdicts = [simulate(MACHINES[name], 1.0, seed)[0] for seed in range(RUNS)]
    assert sum(each.result == "inconclusive" for each in verdicts) >= 0.97 * RUNS
    held = sum(each.ci95 is not None and each.ci95[0] <= 1 <= each.ci95[1] for each in verdicts)
    assert held >= 0.9 * RUNS


@pytest.mark.parametrize("name", ["memory of each form", "two speeds of each form"])
def test_forms_that_wander_by_themselves_seldom_look_different(name: str) -> None:
    verdicts = [simulate(MACHINES[name], 1.0, seed)[0] for seed in range(40)]
    assert sum(each.result != "inconclusive" for each in verdicts) <= 0.125 * 40


def test_a_gain_of_three_percent_is_found_and_one_of_a_third_of_a_percent_is_not_claimed() -> None:
    assert sum(simulate(steady, 1.03, seed)[0].result == "faster" for seed in range(30)) >= 29
    assert sum(simulate(two_clocks, 1.03, seed)[0].result == "faster" for seed in range(30)) >= 28
    assert all(simulate(steady, 1.003, seed)[0].result == "inconclusive" for seed in range(30))


def test_a_loss_of_three_percent_is_never_called_a_gain() -> None:
    results = [simulate(heavy_tails, 1 / 1.03, seed)[0].result for seed in range(30)]
    assert "faster" not in results
    assert results.count("slower") >= 26


def test_speeds_that_switch_are_mostly_said() -> None:
    told = [simulate(own_clocks, 1.0, seed)[1] for seed in range(40)]
    assert sum(any(each.code in ("two_speeds", "drifted") for each in notes) for notes in told) >= 30


def test_the_target_is_reached_where_it_can_be_and_the_interval_is_as_narrow_as_it_says() -> None:
    for seed in range(8):
        verdict, _ = simulate(heavy_tails, 1.0, seed)
        assert verdict.stopped == "target reached"
        assert verdict.ci95 is not None
        assert (verdict.ci95[1] / verdict.ci95[0]) ** 0.5 - 1 < 1.4 * RULE.target


def test_several_processes_do_not_claim_what_differs_from_one_to_the_next() -> None:
    alone = [simulate(steady, 1.0, seed, rule=FIXED, offset=0.03)[0].result for seed in range(60)]
    together = [simulate(steady, 1.0, seed, rule=FIXED, offset=0.03, processes=4)[0].result for seed in range(60)]
    assert sum(each != "inconclusive" for each in alone) > 15, "one process cannot know"
    assert sum(each != "inconclusive" for each in together) <= 6


@pytest.mark.parametrize("speedup", [0.93, 1.0, 1.05])
def test_forms_that_disturb_each_other_get_the_speed_up_of_one_that_runs_alone(speedup: float) -> None:
    found = [simulate(MACHINES["slower after the other form"], speedup, seed) for seed in range(30)]
    verdicts = [verdict for verdict, _ in found]
    held = sum(each.ci95 is not None and each.ci95[0] <= speedup <= each.ci95[1] for each in verdicts)
    assert held >= 27, f"and not that of calls that take turns, {speedup * AFTER_ANOTHER['eager'] / 1.1:.3f}"
    assert all(each.a_wall_us == pytest.approx(EAGER_US, rel=0.01) for each in verdicts)
    expected = {0.93: "slower", 1.0: "inconclusive", 1.05: "faster"}[speedup]
    assert sum(each.result == expected for each in verdicts) >= 29
    assert not any(each.code == "two_speeds" for _, notes in found for each in notes)
