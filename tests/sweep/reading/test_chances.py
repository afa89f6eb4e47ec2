"""Which cells are faster or slower than eager, all of a work taken together."""

import pytest
from msgspec.structs import replace
from tests.sweep.sweeps import compiled_cell, make_result, repeated

from tracekit.model.option import MODES
from tracekit.sweep.cells import CellResult
from tracekit.sweep.figures import CellFigures
from tracekit.sweep.reading.works import read_sweep


def judged(*results: CellResult) -> tuple[CellFigures, ...]:
    (work,) = read_sweep("vit", None, results, None, 1000).works
    return work.cells


def cells(*speedups: float) -> list[CellResult]:
    """One of a work for each speed-up, each in a scope of its own."""
    return [
        make_result(compiled_cell(scope=f"part{at}"), 10_000.0, 10_000.0 / each, seed=at)
        for at, each in enumerate(speedups)
    ]


def on_cpu(result: CellResult) -> CellResult:
    return replace(result, run=replace(result.run, settings=replace(result.run.settings, device="cpu")))


@pytest.mark.parametrize("speedup", [1.001, 1.05, 1.17, 1.175, 1.18, 1.19, 1 / 1.17, 1 / 1.19, 3.0])
def test_a_cell_alone_is_decided_as_the_headline_of_a_run_is(speedup: float) -> None:
    (cell,) = judged(*cells(speedup))
    low, high = cell.verdict.next_process95
    assert cell.result == ("faster" if low > 1 else "slower" if high < 1 else "inconclusive")
    assert (cell.chance <= 0.05) == (cell.result != "inconclusive")
    assert (cell.verdict.result == "faster") == (speedup > 1.02), "what was timed stays as it is"


def test_of_twenty_modes_one_must_be_farther_from_eager_than_alone() -> None:
    assert [cell.result for cell in judged(*cells(1.22))] == ["faster"]
    among = judged(*cells(1.22, *[1.0] * 19))
    assert {cell.result for cell in among} == {"inconclusive"}
    assert among[0].chance == pytest.approx(20 * judged(*cells(1.22))[0].chance, rel=0.05)
    assert judged(*cells(1.5, *[1.0] * 19))[0].result == "faster"
    # Holm's: what is left once the surest are told has fewer beside it.
    assert [cell.result for cell in judged(*cells(1.22, *[1.8] * 19))] == ["faster"] * 20


def test_works_do_not_count_for_each_other() -> None:
    one = make_result(compiled_cell(), 10_000.0, 10_000.0 / 1.2)
    others = [make_result(compiled_cell(batch_size=at), 10_000.0, 10_000.0) for at in range(2, 22)]
    assert read_sweep("vit", None, (one, *others), None, 1000).cells[0].result == "faster"


def test_on_a_cpu_and_over_ranks_the_chance_is_of_what_was_timed() -> None:
    (cell,) = judged(*map(on_cpu, cells(1.1)))
    assert (cell.result, cell.verdict.next_process95, cell.chance < 0.001) == ("faster", None, True)
    ranks = [make_result(compiled_cell(nproc=2, parallel="ddp"), 10_000.0, 9_000.0)]
    assert [(each.result, each.verdict.next_process95) for each in judged(*ranks)] == [("faster", None)]
    # Scattered so far that one in twenty would be as far from eager.
    wide = [
        on_cpu(make_result(compiled_cell(scope=f"part{at}"), 10_000.0, 10_000.0 / speedup, seed=at, share=0.1))
        for at, speedup in enumerate((1.1, *[1.0] * 19))
    ]
    alone, among = judged(wide[0])[0], judged(*wide)[0]
    assert alone.verdict == among.verdict and alone.chance < among.chance


def test_of_few_processes_the_chance_is_as_wide_as_their_interval() -> None:
    (cell,) = judged(*repeated(compiled_cell(), 1.2, 1.5, 1.9))
    assert cell.verdict.ci95[0] < 1 and cell.result == "inconclusive" and cell.chance > 0.05
    (cell,) = judged(*repeated(compiled_cell(), 1.3, 1.31, 1.32))
    assert cell.result == "faster"


@pytest.mark.parametrize("on", [lambda each: each, on_cpu])
def test_two_cells_of_several_processes_say_themselves_how_far_processes_differ(on) -> None:
    def work(apart: float) -> list[CellResult]:
        offsets = (1.0, 1 + apart, 1 / (1 + apart), 1.0)
        return [
            on(each)
            for mode in MODES[:2]
            for each in repeated(compiled_cell(mode=mode), *(1.12 * offset for offset in offsets))
        ]

    near, far = judged(*work(0.005)), judged(*work(0.1))
    assert [cell.result for cell in near] == ["faster"] * 2
    assert [cell.result for cell in far] == ["inconclusive"] * 2
    # Beside the speed-up stands where the next process lies by the same spread.
    low, high = near[0].verdict.next_process95
    assert 1.08 < low < 1.11 < 1.13 < high < 1.16
    # One cell alone has no more than its own few.
    (alone,) = judged(*work(0.005)[:4])
    assert alone.result == ("inconclusive" if alone.verdict.next_process95 else "faster")


def test_what_compiled_while_it_was_timed_has_no_chance() -> None:
    quiet = make_result(compiled_cell(), 10_000.0, 5_000.0)
    busy = make_result(compiled_cell(mode=MODES[1]), 10_000.0, 5_000.0, during_timing=1)
    first, second = judged(quiet, busy)
    assert first.chance == judged(quiet)[0].chance
    assert (second.chance, second.result) == (None, "inconclusive")


def test_a_mode_of_one_process_is_not_taken_for_as_quiet_as_others_are() -> None:
    """1.12x would be beyond chance by the spread of the two modes that were measured in four processes."""
    quiet = [each for mode in MODES[:2] for each in repeated(compiled_cell(mode=mode), *(1.0, 1.001, 0.999, 1.0))]
    *_, one = judged(*quiet, make_result(compiled_cell(mode=MODES[2]), 10_000.0, 10_000.0 / 1.12))
    assert one.verdict.result == "faster" and one.result == "inconclusive"


def test_two_processes_find_no_less_than_one() -> None:
    """Student's t of a cell's own two is 12.7: the spread is that of all cells."""
    two = [each for mode in MODES for each in repeated(compiled_cell(mode=mode), 1.45, 1.55)]
    assert [cell.result for cell in judged(*two)] == ["faster"] * len(MODES)
    assert judged(*two)[0].verdict.ci95[0] > 1.3
