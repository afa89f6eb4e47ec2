"""What the best of a work says in a process that did not choose it."""

import pytest
from msgspec.structs import replace
from tests.sweep.sweeps import compiled_cell, eager_cell, make_environment, make_failure, make_result

from tracekit.sweep.cells import CONFIRMING, Cell, CellResult
from tracekit.sweep.figures import Best, Work
from tracekit.sweep.reading.works import read_sweep

MODES = ("default", "reduce-overhead", "max-autotune")


def cells(*speedups: float) -> list[CellResult]:
    found = [
        make_result(compiled_cell(mode=mode), 10_000.0, 10_000.0 / speedup, seed=at)
        for at, (mode, speedup) in enumerate(zip(MODES, speedups, strict=False))
    ]
    return [make_result(eager_cell(), 10_000.0), *found]


def again(speedup: float, cell: Cell | None = None, **more: object) -> CellResult:
    there = make_result(cell or compiled_cell(mode="reduce-overhead"), 10_000.0, 10_000.0 / speedup, seed=9)
    return replace(there, process=CONFIRMING, started="2026-11-23T00:00:00+00:00", **more)


def read(found: list[CellResult], *confirming: CellResult) -> Work:
    (work,) = read_sweep("vit", None, found, None, 1000, confirming).works
    return work


def latency(work: Work) -> Best:
    return next(each for each in work.best if each.goal == "latency")


def test_the_best_of_three_has_the_figure_of_the_process_that_did_not_choose_it() -> None:
    found = cells(1.5, 2.0, 1.4)
    without, work = read(found), read(found, again(1.8))
    assert latency(without).to_confirm == compiled_cell(mode="reduce-overhead").key
    assert latency(without).confirmed is None
    confirmed = latency(work).confirmed
    assert confirmed.speedup == pytest.approx(1.8, rel=0.01) and confirmed.ci95[0] < 1.8 < confirmed.ci95[1]
    assert confirmed.next_process95[0] < 1.6 < 2.0 < confirmed.next_process95[1]
    assert confirmed.compiled_us == pytest.approx(10_000 / 1.8, rel=0.01)
    assert (confirmed.beats_eager, confirmed.beats_next) == (True, True)
    # No other figure is made of it.
    assert (work.cells, work.eager) == (without.cells, without.eager)
    assert replace(latency(work), confirmed=None) == latency(without)
    assert [best.confirmed for best in work.best if best.goal != "latency"] == [None] * (len(work.best) - 1)


def test_two_modes_and_a_best_that_is_not_faster_need_no_other_process() -> None:
    assert latency(read(cells(1.5, 2.0), again(1.8))).confirmed is None
    assert latency(read(cells(1.01, 1.02, 0.99), again(1.8))).to_confirm is None


@pytest.mark.parametrize(
    ("speedup", "beats_eager", "beats_next"), [(1.8, True, True), (1.45, True, False), (0.9, False, False)]
)
def test_what_no_longer_holds_is_a_fact(speedup: float, beats_eager: bool, beats_next: bool) -> None:
    confirmed = latency(read(cells(1.5, 2.0, 1.4), again(speedup))).confirmed
    assert (confirmed.beats_eager, confirmed.beats_next) == (beats_eager, beats_next)


def test_of_modes_that_tie_none_is_held_against_the_next() -> None:
    work = read(cells(1.98, 2.0, 1.4), again(1.8))
    assert len(latency(work).tied) == 2 and latency(work).confirmed.beats_next is None


def test_that_of_a_mode_which_is_not_the_best_now_and_of_another_machine_counts_nowhere() -> None:
    found = cells(1.5, 2.0, 1.4)
    assert latency(read(found, again(1.8, compiled_cell()))).confirmed is None
    other = again(1.8)
    other = replace(other, run=replace(other.run, environment=make_environment("NVIDIA H100")))
    assert latency(read(found, other)).confirmed is None


def test_one_that_failed_is_told_with_its_failure_and_nothing_else() -> None:
    failed = replace(make_failure(compiled_cell(mode="reduce-overhead")), process=CONFIRMING)
    confirmed = latency(read(cells(1.5, 2.0, 1.4), failed)).confirmed
    assert (confirmed.outcome, confirmed.failure.kind) == ("out_of_memory", "out_of_memory")
    assert (confirmed.speedup, confirmed.beats_eager, confirmed.beats_next) == (None, None, None)
