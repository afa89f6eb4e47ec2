"""Works whose truth is known: what the sweep's rules say of them."""

import pytest

from benchmarks.sweep_verdicts import trial


@pytest.mark.parametrize(("differ", "most"), [("host-bound", 0.0), ("host-bound, t of 4", 0.1)])
def test_twenty_modes_that_gain_nothing_are_hardly_called_faster(differ: str, most: float) -> None:
    found = trial([1.0] * 20, differ, 1, 200)
    assert found["some_called_falsely"] <= most and found["before_some_called_falsely"] > 0.9


def test_the_figure_that_chose_the_best_of_twenty_equals_reads_too_high() -> None:
    found = trial([1.2] * 20, "host-bound", 1, 200)
    assert found["before_best_reads_high_by"] > 0.1 and found["before_best_interval_holds"] < 0.02


def test_what_is_much_faster_is_found_and_several_processes_find_less() -> None:
    assert trial([1.5] + [1.0] * 19, "host-bound", 1, 100)["found_of_faster"] > 0.95
    assert trial([1.2] * 20, "GPU-bound", 1, 50)["found_of_faster"] < 0.05
    assert trial([1.2] * 20, "GPU-bound", 4, 50)["found_of_faster"] > 0.95
