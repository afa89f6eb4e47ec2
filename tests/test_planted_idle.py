"""Planted idle time: the truth is of the timed calls alone; a right cause counts, a wrong one does not."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import pytest
from tests.sides import make_form

from benchmarks.planted_idle import Ledger, fixed_work
from benchmarks.planted_idle_score import Expected, Shown, compact, row, score, summary
from tracekit.measure.forms import Form
from tracekit.measure.timing import Timings, time_forms
from tracekit.model.progress import Silent
from tracekit.model.run import FormName
from tracekit.model.timing import StoppingRule

PYTHON = (Expected("host", ("python",)),)
QUIET_US = {"op_dispatch": 150.0, "guards": 60.0}


def make_shown(
    host_us: float,
    causes_us: dict[str, float] | None,
    *,
    gc_us: float = 0.0,
    busy_us: float = 3000.0,
    ranges_us: dict[str, tuple[float, float]] | None = None,
    advice: tuple[dict[str, Any], ...] = (),
    residual_us: float = 0.0,
    idle_us: float | None = None,
    line_on_screen: bool | None = None,
) -> Shown:
    if idle_us is not None and causes_us is not None:
        residual_us = idle_us - sum(causes_us.values())
    elif causes_us is not None:
        idle_us = sum(causes_us.values())
    per_step: dict[str, Any] = {
        "wall_us": busy_us + (idle_us or 0.0),
        "busy_us": None if causes_us is None else busy_us,
        "unprofiled_idle_us": idle_us,
        "unprofiled_idle_by_cause_us": causes_us,
        "unprofiled_idle_residual_us": residual_us,
    }
    if ranges_us is not None:
        per_step["unprofiled_idle_by_cause_range_us"] = ranges_us
    return Shown({"host": host_us, "gc": gc_us}, per_step, advice, line_on_screen)


def make_advice(saving_us: float, **changes: str) -> dict[str, Any]:
    return {"code": "launch_bound" if changes else "broken_graphs", "saving_us": saving_us, "changes": changes}


TWIN = make_shown(1.0, QUIET_US)


def test_time_under_its_cause_is_right() -> None:
    cell = score(PYTHON, make_shown(2001.0, {**QUIET_US, "python": 1900.0}), TWIN)
    assert (cell["verdict"], cell["wrong"]) == ("right", [])
    assert cell["planted_us"] == {"host": 2000.0}
    assert cell["shown_us"] == {"guards": 0.0, "op_dispatch": 0.0, "python": 1900.0}
    assert (cell["idle_us"], cell["range_us"]) == (1900.0, {"host": None})


def test_time_under_another_cause_is_wrong_twice() -> None:
    cell = score(PYTHON, make_shown(2001.0, {"op_dispatch": 150.0, "guards": 2060.0}), TWIN)
    assert cell["verdict"] == "wrong"
    assert {each.split()[0] for each in cell["wrong"]} == {"guards", "python"}


@pytest.mark.parametrize(("python_us", "guards_us", "verdict"), [(1790.0, 60, "wrong"), (1810.0, 260, "right")])
def test_a_tenth_may_be_missing_and_a_tenth_elsewhere(python_us: float, guards_us: float, verdict: str) -> None:
    causes_us = {"op_dispatch": 150.0, "guards": guards_us, "python": python_us}
    shown = make_shown(2001.0, causes_us, idle_us=2210.0)
    assert score(PYTHON, shown, TWIN)["verdict"] == verdict


def test_more_than_a_tenth_under_another_cause_is_wrong_even_if_the_planted_one_is_right() -> None:
    shown = make_shown(2001.0, {"op_dispatch": 360.0, "guards": 60.0, "python": 2000.0})
    (why,) = score(PYTHON, shown, TWIN)["wrong"]
    assert why.startswith("op_dispatch 210 us")


@pytest.mark.parametrize(("high_us", "verdict"), [(1950.0, "wrong"), (2100.0, "right")])
def test_what_was_planted_is_to_be_inside_the_range(high_us: float, verdict: str) -> None:
    twin = make_shown(1.0, QUIET_US, ranges_us={"python": (0.0, 20.0)})
    ranges_us = {"python": (1700.0, high_us)}
    plant = make_shown(2001.0, {**QUIET_US, "python": 1900.0}, ranges_us=ranges_us, idle_us=2210.0)
    cell = score(PYTHON, plant, twin)
    assert cell["range_us"] == {"host": (1680.0, high_us)}
    assert cell["verdict"] == verdict


def test_cuda_graphs_are_not_to_offer_what_the_program_takes() -> None:
    causes_us = {**QUIET_US, "python": 2000.0}
    for advice, verdict in (
        (make_advice(2200.0, mode="reduce-overhead"), "wrong"),
        (make_advice(200.0, mode="reduce-overhead"), "right"),
        (make_advice(2200.0, scope="regional"), "right"),
        # Who changes the program may take all that is idle.
        (make_advice(2200.0), "right"),
    ):
        assert score(PYTHON, make_shown(2001.0, causes_us, advice=(advice,)), TWIN)["verdict"] == verdict
    operators = (Expected("host", ("op_dispatch", "launch_call")),)
    shown = make_shown(2001.0, {**QUIET_US, "op_dispatch": 2150.0}, advice=(make_advice(2200.0, mode="any"),))
    assert score(operators, shown, TWIN)["verdict"] == "right"


def test_the_bound_of_removing_a_break_is_no_less_than_what_python_takes_there() -> None:
    causes_us = {**QUIET_US, "python": 2000.0}
    for saving_us, verdict in ((1700.0, "wrong"), (1900.0, "right")):
        shown = make_shown(2001.0, causes_us, advice=(make_advice(saving_us),))
        assert score(PYTHON, shown, TWIN)["verdict"] == verdict


def test_time_in_which_the_gpu_worked_is_no_idle_time() -> None:
    copy = (Expected("host", ("launch_call", "sync_wait"), less_busy=True),)
    shown = make_shown(2001.0, {**QUIET_US, "launch_call": 120.0, "op_dispatch": 250.0}, busy_us=4850.0)
    cell = score(copy, shown, TWIN)
    assert cell["planted_us"] == {"host": 150.0}
    # What others may have is a tenth of all that the host took.
    assert cell["verdict"] == "right"


def test_causes_beside_may_have_a_part_and_not_the_whole() -> None:
    wrapper = (Expected("host", ("compiled_wrapper",), ("op_dispatch",)),)
    part = make_shown(2001.0, {**QUIET_US, "compiled_wrapper": 800.0, "op_dispatch": 1350.0})
    whole = make_shown(2001.0, {**QUIET_US, "op_dispatch": 2150.0})
    assert score(wrapper, part, TWIN)["verdict"] == "right"
    (why,) = score(wrapper, whole, TWIN)["wrong"]
    assert why.startswith("compiled_wrapper only 0 us")


def test_causes_and_residual_are_to_make_all_idle_time() -> None:
    plant = make_shown(2001.0, {**QUIET_US, "python": 2000.0})
    (why,) = score(PYTHON, plant, make_shown(1.0, QUIET_US, residual_us=-1.2))["wrong"]
    assert why.startswith("causes and residual of the twin make 209 of 210")
    assert score(PYTHON, plant, make_shown(1.0, QUIET_US, residual_us=0.9))["verdict"] == "right"


def test_the_line_of_planted_python_is_to_be_on_the_screen() -> None:
    def verdict(expected: tuple[Expected, ...], *, on_screen: bool | None) -> str:
        shown = make_shown(2001.0, {**QUIET_US, expected[0].causes[0]: 2000.0}, line_on_screen=on_screen)
        return str(score(expected, shown, TWIN)["verdict"])

    guards = (Expected("host", ("guards",)),)
    assert [verdict(PYTHON, on_screen=on_screen) for on_screen in (True, False, None)] == ["right", "wrong", "right"]
    assert verdict(guards, on_screen=False) == "right"


def test_of_an_earlier_result_verdicts_and_what_was_shown_stay() -> None:
    cells = [{"plant": "sleep", "variant": "eager", "verdict": "right", "shown_us": {}, "wrong": []}]
    first = {"started": "2026", "device": "GPU", "torch": "2", "summary": {"right": 1}, "cells": cells}
    before = compact(first)
    assert before["cells"] == [{"plant": "sleep", "variant": "eager", "verdict": "right", "shown_us": {}}]
    # However often it is run again.
    assert compact({**first, "before": before}) == before


def test_two_plants_of_one_call_are_told_apart() -> None:
    both = (Expected("gc", ("gc",)), *PYTHON)
    apart = make_shown(3001.0, {**QUIET_US, "python": 3000.0, "gc": 1000.0}, gc_us=1000.0)
    together = make_shown(3001.0, {**QUIET_US, "python": 4000.0}, gc_us=1000.0)
    assert score(both, apart, TWIN)["verdict"] == "right"
    assert score(both, together, TWIN)["verdict"] == "wrong"


def test_without_a_gpu_nothing_is_scored() -> None:
    cell = score(PYTHON, make_shown(2001.0, None), make_shown(1.0, None))
    assert (cell["verdict"], cell["planted_us"]) == ("not measured", {"host": 2000.0})


def test_the_share_is_of_the_cells_that_apply() -> None:
    verdicts = ("right", "right", "wrong", "failed", "n/a", "not measured")
    assert summary({"verdict": each} for each in verdicts)["right_share"] == 0.5
    assert summary([{"verdict": "n/a"}])["right_share"] is None
    cell = {"plant": "sleep", "variant": "eager", **score(PYTHON, make_shown(2001.0, QUIET_US), TWIN)}
    assert "python 0 us, planted 2000" in row(cell)


def test_what_a_plant_does_to_the_code_behind_it_is_neither_wrong_nor_called_for() -> None:
    for python_us, verdict in ((1810.0, "right"), (2300.0, "right"), (2550.0, "right"), (2600.0, "wrong")):
        shown = make_shown(2001.0, {**QUIET_US, "python": python_us}, idle_us=2560.0)
        assert score(PYTHON, shown, TWIN)["verdict"] == verdict, python_us


def timed_two(ledger: Ledger) -> tuple[dict[FormName, list[int]], Timings]:
    """The numbers of all calls of two forms, in which call n is planted n ns, and what was timed of them."""
    numbers: dict[FormName, list[int]] = {"eager": [], "compiled": []}

    def call(name: FormName) -> None:
        ledger.new_call()
        numbers[name].append(sum(map(len, numbers.values())))
        ledger.now["host"] += numbers[name][-1]

    forms = tuple(Form(name, "cpu", partial(call, name)) for name in numbers)
    timings = Timings()
    with ledger.keeping_timed_calls():
        time_forms(forms, StoppingRule(4, 0.01, 30.0, 4), 0, timings, Silent())
    # As in recordings.
    call("eager")
    return numbers, timings


def test_the_truth_is_of_the_timed_calls_not_of_controls_and_of_those_before_each() -> None:
    ledger = Ledger()
    numbers, timings = timed_two(ledger)
    for name, walls_us in timings.wall_us.items():
        kept = [now["host"] for _, now in ledger.timed[name]]
        wall_us = dict(zip(numbers[name], (each for _, each in timings.calls[name]), strict=False))
        assert [wall_us[number] for number in kept] == walls_us
        assert len(kept) == 4 < len(timings.calls[name])
        assert ledger.us(make_form(name, walls_us)) == {"host": median(kept) / 1e3, "gc": 0.0}


def test_the_truth_of_other_calls_than_the_timed_ones_is_refused() -> None:
    ledger = Ledger()
    _, timings = timed_two(ledger)
    for walls_us in (timings.wall_us["eager"][:-1], timings.wall_us["compiled"]):
        with pytest.raises(RuntimeError, match="not the"):
            ledger.us(make_form("eager", walls_us))


def test_fixed_work_is_as_much_in_each_call() -> None:
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1

    work = fixed_work(100.0, turn)
    made = []
    for _ in range(3):
        turns = 0
        work()
        made.append(turns)
    assert made == [made[0]] * 3
    assert made[0] > 1
