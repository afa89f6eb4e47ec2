"""Whole timings of machines whose truth is known: a smaller edition of `python -m benchmarks.verdicts`."""

import functools

import pytest

pytest.importorskip("torch")

from tests import simulated as machines

from tracekit.model.timing import StoppingRule

FIXED = StoppingRule(rounds=20, target=0.01, budget_seconds=3.0, least=20)
RUNS = 20
#: Machines whose forms wander by themselves.
WANDERING = ("memory of each form", "two speeds of each form")
#: Several questions are asked of the same runs.
simulated = functools.cache(machines.simulate)


def results(machine, speedup: float, runs: int, **how) -> list[str]:
    return [simulated(machine, speedup, seed, **how)[0].result for seed in range(runs)]


@pytest.mark.parametrize("name", machines.MACHINES)
def test_equal_forms_are_inconclusive_and_the_interval_holds_the_truth(name: str) -> None:
    verdicts = [simulated(machines.MACHINES[name], 1.0, seed)[0] for seed in range(RUNS)]
    inconclusive = sum(each.result == "inconclusive" for each in verdicts)
    assert inconclusive >= (0.875 if name in WANDERING else 0.97) * RUNS
    assert name in WANDERING or sum(each.ci95[0] <= 1 <= each.ci95[1] for each in verdicts) >= 0.9 * RUNS


def test_speeds_that_switch_are_mostly_said() -> None:
    told = [simulated(machines.own_clocks, 1.0, seed)[1] for seed in range(RUNS)]
    assert sum(any(each.code in ("two_speeds", "drifted") for each in notes) for notes in told) >= 0.75 * RUNS


def test_a_gain_of_three_percent_is_found_and_one_of_a_third_of_a_percent_is_not_claimed() -> None:
    assert results(machines.steady, 1.03, 20).count("faster") >= 19
    assert results(machines.two_clocks, 1.03, 20).count("faster") >= 18
    assert set(results(machines.steady, 1.003, 20)) == {"inconclusive"}


def test_a_loss_of_three_percent_is_never_called_a_gain() -> None:
    found = results(machines.heavy_tails, 1 / 1.03, 20)
    assert "faster" not in found and found.count("slower") >= 17


def test_the_target_is_reached_where_it_can_be_and_the_interval_is_as_narrow_as_it_says() -> None:
    for seed in range(8):
        verdict, _ = simulated(machines.heavy_tails, 1.0, seed)
        assert verdict.stopped == "target reached"
        assert (verdict.ci95[1] / verdict.ci95[0]) ** 0.5 - 1 < 1.4 * machines.RULE.target


def test_several_processes_do_not_claim_what_differs_from_one_to_the_next() -> None:
    of = {"rule": FIXED, "offset": 0.03}
    assert results(machines.steady, 1.0, 20, **of).count("inconclusive") < 15, "one process cannot know"
    assert results(machines.steady, 1.0, 20, processes=4, **of).count("inconclusive") >= 18


@pytest.mark.parametrize(("speedup", "result"), [(0.93, "slower"), (1.0, "inconclusive"), (1.05, "faster")])
def test_forms_that_disturb_each_other_get_the_speed_up_of_one_that_runs_alone(speedup: float, result: str) -> None:
    machine = machines.MACHINES["slower after the other form"]
    assert results(machine, speedup, 20).count(result) >= 19
    found = [simulated(machine, speedup, seed) for seed in range(20)]
    held = sum(verdict.ci95[0] <= speedup <= verdict.ci95[1] for verdict, _ in found)
    assert held >= 18, f"and not that of calls that take turns, {speedup * machines.AFTER_ANOTHER['eager'] / 1.1:.3f}"
    assert all(verdict.a_wall_us == pytest.approx(machines.EAGER_US, rel=0.01) for verdict, _ in found)
    assert not any(each.code == "two_speeds" for _, notes in found for each in notes)
