"""From cells to works: one row for each work and machine, and what keeps cells from being compared."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sweep.sweeps import (
    compiled_cell,
    eager_cell,
    make_asked,
    make_environment,
    make_failure,
    make_result,
    repeated,
)

from tracekit.model.note import Note
from tracekit.report.contract import json_text
from tracekit.sweep.cells import CellFailure, CellResult
from tracekit.sweep.figures import Best, Goal, PublishedBeside, Sweep
from tracekit.sweep.reading.best import find_best
from tracekit.sweep.reading.works import find_side_by_side, read_sweep
from tracekit.sweep.report.labels import label
from tracekit.sweep.statements import notes as statements
from tracekit.sweep.suites import VISION

from ...report.test_schemas import faults


def read(*results: CellResult) -> Sweep:
    return read_sweep("vit", None, results, None, 1000)


def codes(notes: Iterable[Note]) -> list[str]:
    return [each.code for each in notes]


def changed(result: CellResult, **settings: object) -> CellResult:
    """The cell as if it had been measured with other settings."""
    return replace(result, run=replace(result.run, settings=replace(result.run.settings, **settings)))  # type: ignore[arg-type]


def on(result: CellResult, packages: dict[str, str] | None = None, **environment: object) -> CellResult:
    """The cell as if it had been measured on such a machine."""
    there = replace(result.run.environment, **environment)  # type: ignore[arg-type]
    there = replace(there, packages={**there.packages, **(packages or {})})
    return replace(result, run=replace(result.run, environment=there))


def test_the_speed_up_is_of_the_cells_own_process() -> None:
    # Another process's eager form was half as fast: that is no part of this one's speed-up.
    (work,) = read(make_result(eager_cell(), 20_000.0), make_result(compiled_cell(), 10_000.0, 5_000.0)).works
    verdict = work.cells[1].verdict
    assert (verdict.speedup, verdict.result, verdict.n) == (pytest.approx(2.0, rel=0.01), "faster", 40)
    assert verdict.ci95[0] < 2.0 < verdict.ci95[1]
    assert work.cells[0].verdict is None


def test_cells_on_other_machines_are_another_row() -> None:
    results = (
        make_result(eager_cell()),
        make_result(compiled_cell()),
        make_result(compiled_cell(mode="reduce-overhead"), environment=make_environment("NVIDIA A100")),
        make_failure(compiled_cell(mode="max-autotune"), "timed_out"),
    )
    sweep = read_sweep("vit", make_asked([each.cell for each in results]), results, None, 1000)
    assert [(work.machine, len(work.cells)) for work in sweep.works] == [("NVIDIA H200", 3), ("NVIDIA A100", 1)]
    assert sweep.works[0].eager.processes == 2
    assert statements.SeveralMachines(machines=["NVIDIA H200", "NVIDIA A100"]) in sweep.notes
    assert sweep.missing == 0
    other = make_result(compiled_cell(batch_size=4), environment=make_environment(torch="2.12.0"))
    assert statements.SeveralTorches(versions=["2.11.0", "2.12.0"]) in read(*results[:2], other).notes
    assert read(*results[:2]).notes == ()


def test_a_sweep_of_failures_alone_has_works_and_no_figures() -> None:
    (work,) = read(make_failure(eager_cell()), make_failure(compiled_cell())).works
    assert (work.eager, work.best, work.settings) == (None, (), None)
    assert [cell.outcome for cell in work.cells] == ["out_of_memory"] * 2


def test_cells_of_other_size_or_type_are_another_work() -> None:
    for settings in ({"dtype": "float16"}, {"size": "tiny"}):
        works = read(make_result(eager_cell()), changed(make_result(compiled_cell()), **settings)).works
        assert [(len(work.cells), work.eager.processes) for work in works] == [(1, 1)] * 2


def test_cells_that_were_steered_otherwise_differ() -> None:
    steered = changed(make_result(compiled_cell()), variables={"TORCHINDUCTOR_GRAPH_PARTITION": "0"})
    (work,) = read(make_result(eager_cell()), steered).works
    assert work.differs == ("variables: none, TORCHINDUCTOR_GRAPH_PARTITION=0",)
    assert work.cells[1].command.startswith("TORCHINDUCTOR_GRAPH_PARTITION=0 tracekit profile ")


@pytest.mark.parametrize(
    ("there", "code", "values"),
    [
        ({"cpu": "another CPU"}, "cpu", ["a CPU", "another CPU"]),
        ({"packages": {"transformers": "5.2"}}, "transformers", ["5.1", "5.2"]),
        ({"packages": {"triton": "3.7"}}, "triton", ["3.6", "3.7"]),
        ({"driver": "590.1"}, "driver", ["580.1", "590.1"]),
    ],
)
def test_machines_that_differ_in_what_matters_are_said_where_their_cells_share_a_row(there, code, values) -> None:
    here = {"transformers": "5.1", "triton": "3.6", "numpy": "2.0"}
    one = on(make_result(eager_cell()), here, driver="580.1")
    alike = on(make_result(compiled_cell()), {**here, "numpy": "2.1"}, driver="580.1")
    assert read(one, alike).notes == ()
    sweep = read(one, on(alike, **there))  # type: ignore[arg-type]
    difference = f"{'CPU' if code == 'cpu' else code}: {', '.join(values)}"
    assert [work.differs for work in sweep.works] == [(difference,)]
    assert sweep.notes == (statements.MachinesOfAWorkDiffer(differences=[difference], works=1, of_works=1),)
    told = json.loads(json_text(sweep))
    assert told["works"][0]["differs"] == told["notes"][0]["facts"]["differences"] == [difference]


@pytest.mark.parametrize(
    ("there", "code", "values"),
    [
        ({"driver": "590.1"}, "driver", ["580.1", "590.1"]),
        ({"packages": {"torch": "2.12.0"}}, "torch", ["2.11.0", "2.12.0"]),
        ({"gpu": "NVIDIA A100"}, "machine", ["NVIDIA H200", "NVIDIA A100"]),
    ],
)
def test_processes_of_a_cell_are_pooled_only_where_machines_are_alike(there, code, values) -> None:
    processes = [on(each, driver="580.1") for each in repeated(compiled_cell(), 1.9, 2.0, 2.1)]
    assert codes(read(*processes).notes) == []
    first, second, third = processes
    sweep = read(first, on(second, **there), third, on(make_result(eager_cell()), driver="580.1"))
    numbers = [[each.process for each in cell.processes] for work in sweep.works for cell in work.cells]
    assert numbers == [[1, 3], [1], [2]]
    assert [work.cells[0].verdict.processes for work in sweep.works] == [2, 1]
    (note,) = [each for each in sweep.notes if each.code == "processes_not_pooled"]
    differences = [f"{code}: {', '.join(values)}"]
    assert note == statements.ProcessesNotPooled(cells=1, of_cells=2, differences=differences)
    assert "machines_of_a_work_differ" not in codes(sweep.notes), "rows of their own"
    told = json.loads(json_text(sweep))
    assert [work["apart"] for work in told["works"]] == [
        [f"driver: {value}"] if code == "driver" else [] for value in values
    ]
    names = {label(sweep).of(work) for work in sweep.works}
    assert len(names) == 2 and all(any(value in name for name in names) for value in values)
    assert faults("sweep", json_text(sweep)) == []


@pytest.mark.parametrize(
    ("hosts", "shared"), [("abc", None), ("aaa", None), ("aab", {"cells": 1, "of_cells": 1}), ((None,) * 3, None)]
)
def test_processes_that_were_spread_and_share_a_host_are_told(hosts, shared) -> None:
    there = zip(repeated(compiled_cell(), 2.0, 2.0, 2.0), hosts, strict=True)
    sweep = read(*(replace(each, host=host) for each, host in there), make_result(eager_cell()))
    facts = [each.facts for each in sweep.notes if each.code == "processes_share_hosts"]
    assert facts == ([shared] if shared else [])


def test_modes_measured_in_several_processes_are_not_held_against_the_spread_of_eager() -> None:
    eager = [make_result(eager_cell(), us, seed=at) for at, us in enumerate((10e3, 13e3))]
    eager[1] = replace(eager[1], process=2, started="2026-11-22T00:00:00+00:00")
    single, pooled = (read(*eager, *repeated(compiled_cell(), *of)) for of in ((1.1,), (1.1, 1.1, 1.1)))
    assert [each.works[0].eager.spread > 0.25 for each in (single, pooled)] == [True, True]
    least = [each.least for sweep in (single, pooled) for each in sweep.works[0].best if each.goal == "latency"]
    assert least == [single.works[0].eager.spread, 0.01]


def test_processes_that_were_asked_for_and_are_not_there_are_counted() -> None:
    first, *_, last = repeated(compiled_cell(), 2.0, 2.0, 2.0)
    asked = replace(make_asked([first.cell, eager_cell()]), processes={first.cell.key: 5, eager_cell().key: 5})
    sweep = read_sweep("vit", asked, (first, last, replace(last, process=9)), None, 1000)
    assert (sweep.missing, sweep.processes_missing) == (1, 3), "2, 4 and 5"


def test_other_rules_and_other_versions_of_tracekit_are_said() -> None:
    one, two = make_result(eager_cell()), make_result(compiled_cell())
    rules = (replace(two.run.rule, rounds=300), replace(two.run.rule, rounds=None, target=0.02))
    longer, wider = (replace(two, run=replace(two.run, rule=rule)) for rule in rules)
    sought = replace(two, run=replace(two.run, rule=replace(two.run.rule, rounds=None)))
    for a, b in ((one, longer), (sought, wider)):
        assert "several_timing_rules" in codes(read(a, b).notes)
    later = replace(two, tracekit="0.2.0")
    assert statements.SeveralTracekits(versions=["0.1.0", "0.2.0"]) in read(one, later).notes


def test_two_files_of_one_cell_are_told_and_the_later_one_counts() -> None:
    early = make_result(compiled_cell())
    late = replace(early, started="2026-11-22T00:00:00+00:00")
    for pair in ((late, early), (early, late)):
        sweep = read(make_result(eager_cell()), *pair)
        (work,) = sweep.works
        assert [cell.cell.form for cell in work.cells] == ["eager", "compiled"]
        assert (work.cells[1].started, work.eager.processes) == (late.started, 2)
        assert sweep.notes == (statements.SameCellInFiles(key=early.cell.key, files=2),)
    other_gpu = replace(late, run=make_result(compiled_cell(), environment=make_environment("NVIDIA A100")).run)
    assert "same_cell_in_files" not in codes(read(early, other_gpu).notes), "rows of their own"


def test_that_a_gpu_was_held_back_is_said_for_the_whole_sweep_and_of_which_form_a_clock_is() -> None:
    result, forms = make_result(compiled_cell()), []
    for form, clock in zip(result.run.forms, (1965, 1740), strict=True):
        (sample,) = form.gpu_state.samples
        sample = replace(sample, sm_clock_mhz=clock)
        samples = tuple(replace(sample, moment=of, seconds=at) for at, of in enumerate(("before", "during", "after")))
        forms.append(replace(form, gpu_state=replace(form.gpu_state, samples=samples, slowed_us={"power": 1e6})))
    held = replace(result, run=replace(result.run, forms=tuple(forms)))
    sweep = read(held, make_result(eager_cell()), make_failure(compiled_cell(mode="max-autotune")))
    compiled = sweep.works[0].cells[0]
    (clocks,) = [each.facts for each in compiled.notes if each.code == "clocks_differ"]
    assert (clocks["sides"], clocks["clocks_mhz"]) == (["eager", "compiled"], [1965, 1740])
    assert statements.CellsThrottled(cells=1, of_cells=2) in sweep.notes
    assert [each.facts["limit"] for each in compiled.conditions.limits] == ["power"]


def at(result: CellResult, clock: str, seconds: float = 60.0) -> CellResult:
    return replace(result, started=f"2026-11-21T{clock}+00:00", seconds=seconds)


def test_cells_that_ran_at_the_same_time_are_counted() -> None:
    first, second = at(make_result(eager_cell()), "19:00:00"), make_result(compiled_cell())
    later = at(make_result(compiled_cell(batch_size=4)), "20:00:00")
    (note,) = find_side_by_side((first, at(second, "19:00:30"), later))
    assert note == statements.CellsSideBySide(cells=2, of_cells=3)
    # One after the other, and another file of the same cell.
    assert list(find_side_by_side((first, at(second, "19:00:58"), at(first, "19:00:10", 40.0)))) == []
    # On another host it disturbs nobody.
    there, here = (replace(each, host=name) for each, name in ((first, "a"), (at(second, "19:00:30"), "b")))
    assert list(find_side_by_side((there, here))) == []
    both = read(there, replace(here, host="a"), replace(later, host="a"))
    conditions = {cell.cell.key: cell.conditions.concurrent for work in both.works for cell in work.cells}
    assert conditions == {first.cell.key: 1, second.cell.key: 1, later.cell.key: 0}
    # A cell that failed disturbed the others all the same.
    (note,) = find_side_by_side((first, at(make_failure(compiled_cell()), "19:00:10", 40.0)))
    assert note.facts == {"cells": 1, "of_cells": 1}


def beside(*results: CellResult) -> tuple[PublishedBeside, ...]:
    return read_sweep("vision", None, results, VISION, 1000).published


def about(figure: float) -> Any:
    return pytest.approx(figure, rel=0.01)


def test_published_figures_stand_beside_the_batch_size_they_are_of() -> None:
    cells = [cell(batch_size=batch) for batch in (1, 4) for cell in (eager_cell, compiled_cell)]
    sizes = [(cell, 1_000.0 * cell.request.batch_size) for cell in cells]
    results = [make_result(cell, 8 * us, 4 * us, share=0.0001) for cell, us in sizes]
    results.append(make_result(compiled_cell(mode="reduce-overhead"), 8_000.0, 1_000.0))
    sweep = read_sweep("vision", None, results, VISION, 1000)
    (row,) = sweep.published
    assert (row.published.eager_ms, row.published.compiled_ms) == (9.325, 7.584)
    assert (row.speedup, row.result) == (about(2.0), "faster") and row.ci95[0] < 2.0 < row.ci95[1]
    assert (row.dtype, row.machine, row.size) == ("bfloat16", "NVIDIA H200", "full")
    # The default mode's, not the fastest's.
    assert (row.eager_ms, row.compiled_ms) == (about(8.0), about(4.0))
    here = {"machine": "NVIDIA H200", "torch": "2.11.0", "dtype": "bfloat16"}
    facts = {"random_weights": {}, "calls": {"least": 40, "most": 40}, "what_a_call_contains": {}}
    facts |= {code: {"here": [value]} for code, value in here.items()}
    assert {each.code: each.facts for each in sweep.differences} == facts


def test_published_figures_get_a_row_for_each_type_size_and_machine_and_a_gain_at_full_size_alone() -> None:
    rows = beside(
        changed(make_result(compiled_cell("vit", dtype="float16"), 8_000.0, 2_000.0), dtype="float16"),
        make_result(compiled_cell("vit"), 8_000.0, 4_000.0),
        changed(make_result(compiled_cell("vit", size="tiny"), 800.0, 400.0), size="tiny"),
    )
    assert [(row.dtype, row.size) for row in rows] == [("float16", "full"), ("bfloat16", "full"), ("bfloat16", "tiny")]
    assert [row.speedup for row in rows] == [about(4.0), about(2.0), None]
    assert (rows[2].ci95, rows[2].result, rows[2].eager_ms) == (None, None, about(0.8))
    # Eager is that of the compiled cell's process.
    results = make_result(eager_cell(), 16_000.0), make_result(compiled_cell(), 8_000.0, 4_000.0)
    (row,) = beside(*results)
    assert (row.eager_ms, row.eager_median_ms) == (about(8.0), about(8.0))
    (row,) = beside(results[0])
    assert (row.eager_ms, row.compiled_ms, row.speedup) == (about(16.0), None, None)


def test_beside_published_figures_the_result_is_the_compiled_cells_at_full_size() -> None:
    for us, result in ((11_000.0, "inconclusive"), (6_000.0, "faster")):
        results = make_result(eager_cell()), make_result(compiled_cell(), 12_000.0, us)
        assert [row.result for row in beside(*results)] == [result]
        (small,) = beside(*(changed(each, size="small") for each in results))
        assert (small.speedup, small.result) == (None, None)


def best(goal: Goal, *results: CellResult, calls: int | None = None) -> Best:
    """In so many calls, or by this goal."""
    (work,) = read_sweep("vit", None, results, None, calls if calls and calls > 1 else 1000).works
    return next(each for each in work.best if (each.goal, each.calls) == (goal, calls))


def modes_of(found: Best) -> list[str]:
    return [each.mode for each in found.candidates]


def tied(found: Best) -> list[str]:
    return [found.candidates[at].mode for at in found.tied]


def default(us: float = 8_000.0, eager_us: float = 10_000.0, **changes: Any) -> CellResult:
    return make_result(compiled_cell(), eager_us, us, **{"seed": 2, **changes})


def graphed(us: float = 8_000.0, **changes: Any) -> CellResult:
    return make_result(compiled_cell(mode="reduce-overhead"), 10_000.0, us, **{"seed": 3, **changes})


def tuned(us: float, share: float) -> CellResult:
    return make_result(compiled_cell(mode="max-autotune"), 10_000.0, us, seed=4, share=share)


EAGER = make_result(eager_cell(), 10_000.0)
EXACT_EAGER = make_result(eager_cell(), share=0.0001)
DEFAULT = default(compile_us=20e6, reserved=2.0)
GRAPHED = graphed(5_000.0, compile_us=40e6, reserved=4.0)
EXACT_GRAPHED = graphed(5_000.0, share=0.0001)
#: Far quicker on the whole, in a process that keeps time so badly that no verdict calls it faster.
DOUBTFUL = graphed(3_600.0, seed=7, share=1.5)
#: Slower than eager, and hardly compiled at all.
SLOWER = default(10_500.0, compile_us=20_000.0)
AUTOTUNED, OVERHEAD = "max-autotune", "reduce-overhead"


def test_the_fastest_is_best_where_intervals_part_it_from_the_next() -> None:
    found = best("latency", EAGER, DEFAULT, GRAPHED)
    assert modes_of(found) == ["reduce-overhead", "default", "eager"]
    assert (found.clear, tied(found)) == (True, ["reduce-overhead"])
    assert found.candidates[0].command.startswith("tracekit profile vit --compiled --mode reduce-overhead")
    assert not {"--compiled", "--mode"} & set(found.candidates[2].command.split())


@pytest.mark.parametrize(
    ("results", "expected", "least"),
    [
        # Intervals that meet, and a difference below two percent.
        ((EAGER, DEFAULT, GRAPHED, tuned(4_950.0, 0.05)), {AUTOTUNED, OVERHEAD}, None),
        ((EXACT_EAGER, EXACT_GRAPHED, tuned(4_940.0, 0.0001)), {AUTOTUNED, OVERHEAD}, 0.02),
        # 2.0 and 1.82 times as fast, by intervals far apart; but the same eager work took 20 % longer in one of them.
        ((EAGER, default(6_600.0, 12_000.0), GRAPHED), {"default", OVERHEAD}, 0.2),
        # What is faster is never tied with eager, however far eager processes lie apart.
        ((make_result(eager_cell(), 30_000.0, seed=5), DEFAULT), {"default"}, 2.0),
        # What no verdict calls faster beats nothing, however large its ratio.
        ((EAGER, DOUBTFUL), {"eager", OVERHEAD}, None),
        ((EAGER, DEFAULT, DOUBTFUL), {"default"}, None),
    ],
)
def test_what_nothing_tells_apart_from_the_fastest_is_tied_with_it(results, expected, least) -> None:
    found = best("latency", *results)
    assert set(tied(found)) == expected
    assert least is None or found.least == pytest.approx(least, rel=0.05)


def test_what_no_verdict_calls_faster_stands_behind_eager() -> None:
    candidates = best("latency", EAGER, DEFAULT, DOUBTFUL).candidates
    found = [(each.mode, each.against_eager) for each in candidates]
    assert found == [("default", "better"), ("eager", None), (OVERHEAD, "undecided")]


MANY = 100_000


@pytest.mark.parametrize(
    ("calls", "results", "expected"),
    [
        # 20 s of compiling, 5 ms saved a call: it pays after some 4,000 calls.
        (3_000, (EAGER, GRAPHED), ["eager"]),
        (20_000, (EAGER, GRAPHED), [OVERHEAD]),
        # By the medians it would have paid, but its verdict is inconclusive: no saving is established.
        (20_000, (EAGER, DOUBTFUL), ["eager", OVERHEAD]),
        # What never pays is behind eager in any number of calls.
        (1_000, (EAGER, SLOWER), ["eager"]),
        # 880 s against 1,200, the middle of 1,000 and 1,400; but the same eager work took 40 % longer in the compiled
        # form's process.
        (MANY, (EAGER, default(8_600.0, 14_000.0)), ["eager", "default"]),
        # Within a tenth, which is 80 s here, they are a tie.
        (MANY, (DEFAULT, graphed(compile_us=70e6)), ["default", OVERHEAD]),
        (MANY, (DEFAULT, graphed(compile_us=120e6)), ["default"]),
    ],
)
def test_a_cold_start_is_won_only_by_what_has_paid_by_then(calls, results, expected) -> None:
    assert tied(best("cold_start", *results, calls=calls)) == expected


def test_cold_starts_count_compiling_and_turn_with_the_number_of_calls() -> None:
    few, many = (best("cold_start", EAGER, DEFAULT, GRAPHED, calls=n) for n in (100, MANY))
    assert modes_of(few)[0] == "eager"
    assert (modes_of(many), many.clear) == ([OVERHEAD, "default", "eager"], True)
    assert modes_of(best("cold_start", DEFAULT, graphed(compile_us=21e6), calls=1)) == ["eager", "default", OVERHEAD]


def test_failed_cells_are_no_candidates_and_one_way_alone_is_no_choice() -> None:
    failed = make_failure(compiled_cell(mode="max-autotune"))
    # One that was timed and failed afterwards, too.
    late = replace(GRAPHED, outcome="killed", failure=CellFailure("killed", "signal 9"))
    assert modes_of(best("latency", EAGER, DEFAULT, failed, late)) == ["default", "eager"]
    assert modes_of(best("memory", EAGER, DEFAULT, late)) == modes_of(best("memory", EAGER, DEFAULT))
    assert read(EAGER).works[0].best == ()


@pytest.mark.parametrize("noisy", [1, 2])
def test_the_noise_of_either_process_makes_ties_of_compiled_forms(noisy: int) -> None:
    results = EXACT_EAGER, default(5_000.0, share=0.0001), graphed(5_600.0, share=0.0001)
    assert tied(best("latency", *results)) == ["default"]
    (work,) = read(*results).works
    cells = list(work.cells)
    cells[noisy] = replace(cells[noisy], verdict=replace(cells[noisy].verdict, noise_floor=0.3))
    found = next(each for each in find_best(work.eager, cells, 1000, "") if each.goal == "latency")
    assert tied(found) == ["default", OVERHEAD]
    assert [each.needed for each in found.candidates] == [None, 0.3, None]


def test_a_compiled_cold_start_has_two_ends_and_wins_by_the_worse() -> None:
    (eager, compiled) = best("cold_start", EAGER, DEFAULT, calls=1).candidates
    # The eager form's first call took 5 ms, which is no longer than its others: nothing was spared.
    assert (eager.lowest, compiled.lowest, compiled.value) == (None, 20e6, pytest.approx(20e6, rel=1e-3))
    first, second = DEFAULT.run.forms
    heavy = replace(first, warmup_us=(9e6, *first.warmup_us[1:]))
    spared = replace(DEFAULT, run=replace(DEFAULT.run, forms=(heavy, second)))
    found = best("cold_start", EAGER, spared, calls=1).candidates[1]
    assert (found.lowest, found.value) == (20e6, pytest.approx(29e6, rel=0.01))


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ((EAGER, DEFAULT, GRAPHED), ["eager", "default"]),
        ((EAGER, default(reserved=1.5)), ["default"]),
        ((DEFAULT, GRAPHED), ["default"]),
        # One percent parts what forms hold.
        ((DEFAULT, graphed(reserved=2.05)), ["default"]),
        ((DEFAULT, graphed(reserved=2.01)), ["default", OVERHEAD]),
    ],
)
def test_memory_of_eager_is_compared_where_it_had_a_process_of_its_own(results, expected) -> None:
    found = best("memory", *results)
    assert tied(found) == expected
    assert ("eager" in modes_of(found)) == (results[0] is EAGER)
