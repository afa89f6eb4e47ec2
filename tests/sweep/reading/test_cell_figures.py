"""What one cell says by its own process, and which command profiles it by itself."""

import math
from statistics import fmean, median, stdev
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sweep.sweeps import GIB, compiled_cell, eager_cell, make_failure, make_result, repeated

from tracekit.comparison.judging.timed import TimedForm
from tracekit.comparison.judging.verdict import judge
from tracekit.model.child import ChildForm
from tracekit.model.comparison import Verdict
from tracekit.model.gpu import GpuSample, GpuState
from tracekit.model.note import Note
from tracekit.model.run import FormResult
from tracekit.model.timing import FormTiming
from tracekit.statistics.interval import Interval
from tracekit.sweep.cells import Cell, CellResult
from tracekit.sweep.reading.calls import ends, pool_eager, until_done_us
from tracekit.sweep.reading.cell_figures import command_of, read_cell
from tracekit.sweep.statements import notes as statements


def changed(result: CellResult, at: int, **changes: Any) -> CellResult:
    """The cell, with one of its forms changed."""
    forms = list(result.run.forms)
    forms[at] = replace(forms[at], **changes)
    return replace(result, run=replace(result.run, forms=tuple(forms)))


def form(result: CellResult, at: int) -> ChildForm:
    return result.run.forms[at]


def test_mean_and_median_come_with_their_intervals_and_an_outlier_moves_the_mean() -> None:
    result = make_result(eager_cell(), 1000.0, seed=3)
    times = form(result, 0).times
    disturbed = replace(times, wall_us=(*times.wall_us[:-1], 50_000.0), device_us=None)
    found = read_cell((result,), 1000).eager
    slow = read_cell((changed(result, 0, times=disturbed),), 1).eager
    assert (found.calls, found.mean_us) == (40, pytest.approx(fmean(times.wall_us)))
    assert (found.median_us, found.device_median_us) == (median(times.wall_us), pytest.approx(0.9 * found.median_us))
    widths = []
    for each in (found, slow):
        assert each.median_ci95[0] < each.median_us < each.median_ci95[1] < 1.01 * each.median_us
        assert each.mean_ci95[0] < each.mean_us < each.mean_ci95[1]
        widths.append(each.mean_ci95[1] - each.mean_ci95[0])
    assert ends(Interval(5.0, 0.0, math.inf, 5)) is None, "an interval without an end"
    assert slow.median_us == pytest.approx(found.median_us, rel=0.002)
    assert slow.mean_us > 2 * found.mean_us and widths[1] > 100 * widths[0]


def test_a_cold_start_is_the_calls_that_were_made_and_then_steady_ones() -> None:
    compiled = form(make_result(compiled_cell(), compiled_us=1_000.0, compile_us=9e6, share=0.0), 1)
    assert [until_done_us(compiled, calls) for calls in (1, 3, 103)] == pytest.approx([9e6, 9e6 + 2e3, 9e6 + 102e3])


def test_eager_memory_beside_a_compiled_form_is_known_of_its_warm_up_alone() -> None:
    for cell, steady in ((compiled_cell(), None), (eager_cell(), 2 * GIB)):
        found = read_cell((make_result(cell),), 1000).eager
        assert (found.memory_bytes, found.warmup_memory_bytes) == (steady, 2 * GIB)
    # A warm-up that held more is told besides.
    result = make_result(compiled_cell(), reserved=2.0)
    memory = form(result, 1).memory
    heavy = replace(memory, warmup=replace(memory.warmup, reserved_bytes=9))
    found = read_cell((changed(result, 1, memory=heavy),), 1000).compiled
    assert (found.memory_bytes, found.warmup_memory_bytes) == (2 * GIB, 9)


def test_a_compiled_cell_that_failed_before_it_was_warm_has_no_start_of_its_own() -> None:
    result = make_result(compiled_cell())
    half = replace(result, outcome="failed", run=replace(result.run, forms=result.run.forms[:1]))
    found = read_cell((half,), 1000)
    assert (found.first_call_us, found.soon_us, found.conditions.sm_clock_mhz) == (None, None, None)


@pytest.mark.parametrize(
    ("hits", "empty", "notes"),
    [
        (0, True, ()),
        (1, True, (statements.GraphsFromCache(hits=1, graphs=3, cache_was_empty=True),)),
        (0, False, (statements.CacheNotEmpty(),)),
    ],
)
def test_what_came_from_a_cache_is_told(hits: int, empty: bool, notes: tuple[Note, ...]) -> None:
    result = make_result(compiled_cell())
    facts = form(result, 1).compilation
    facts = replace(facts, graphs=3, cache_hits=hits, cache_was_empty=empty)
    found = read_cell((changed(result, 1, compilation=facts),), 1000)
    assert (found.cache_hits, found.cache_was_empty, found.load_seconds) == (hits, empty, 3.0)
    assert (found.size_reason, found.notes) == ("as asked", notes)


def test_a_cell_that_failed_before_it_was_built_is_asked_for_in_full() -> None:
    how = {"mode": "max-autotune", "scope": "regional", "fullgraph": False, "dynamic": True}
    call = {"batch_size": 5, "height": 1024, "width": 512, "steps": 4, "prompt": "a dog"}
    failed = make_failure(compiled_cell("flux", size="small", dtype="float16", **how, **call))
    assert command_of(failed, "compiled") == (
        "tracekit profile flux --compiled --size small --dtype float16 --scope regional --mode max-autotune"
        " --no-fullgraph --dynamic --batch-size 5 --height 1024 --width 512 --steps 4 --prompt 'a dog'"
    )


def test_eager_is_asked_for_without_what_says_how_to_compile_and_a_model_of_ones_own_with_its_options() -> None:
    asked = make_failure(eager_cell("qwen2.5-vl", batch_size=3, use_fast=True, phase="generate", pretrained="org/name"))
    assert command_of(asked, "eager") == (
        "tracekit profile qwen2.5-vl --batch-size 3 --pretrained org/name --use-fast --phase generate"
    )
    compiled = make_failure(compiled_cell("flux", mode="default", fullgraph=True))
    assert command_of(compiled, "eager") == "tracekit profile flux --batch-size 1"
    # A model of one's own keeps its options, and a cell that ran its prompt and fullgraph.
    asked = make_failure(compiled_cell("my_model.py:build", options=("layers=3",)))
    assert command_of(asked, "compiled").endswith("--batch-size 1 -- layers=3")
    ran = command_of(make_result(compiled_cell("flux", prompt="a dog", fullgraph=True)), "compiled")
    assert "--prompt 'a dog'" in ran and "--fullgraph" in ran


def test_eager_is_pooled_over_processes_which_count_alike() -> None:
    cells = eager_cell(), compiled_cell(), compiled_cell(mode="reduce-overhead")
    walls = zip(cells, (9e3, 10e3, 11e3), strict=True)
    results = [make_result(cell, us, seed=at) for at, (cell, us) in enumerate(walls)]
    pool = pool_eager(results, 1000)
    assert (pool.processes, pool.calls) == (3, 120)
    assert pool.median_us == pytest.approx((9e3 * 10e3 * 11e3) ** (1 / 3), rel=0.005)
    assert pool.spread == pytest.approx(11 / 9 - 1, rel=0.02)
    # Student's t of three processes: 4.3 standard errors of the logarithms.
    error = stdev(math.log(us) for us in (9e3, 10e3, 11e3)) / math.sqrt(3)
    assert math.log(pool.median_ci95[1] / pool.median_us) == pytest.approx(4.303 * error, rel=0.05)
    assert pool_eager(results[:2], 1000).median_ci95 is None
    one = pool_eager(results[:1], 1000)
    assert one.median_ci95[1] - one.median_ci95[0] < 0.01 * one.median_us


def started(first_us: float, cell: Cell, steady_bytes: int = 2 * GIB) -> CellResult:
    """A cell whose eager form's first call took so long, and whose steady calls held so much."""
    result = make_result(cell, share=0.0)
    memory = form(result, 0).memory
    memory = replace(memory, steady=replace(memory.warmup, reserved_bytes=steady_bytes))
    return changed(result, 0, warmup_us=(first_us, 10_000.0), memory=memory)


def test_memory_is_that_of_a_process_without_a_compiled_form_and_the_start_the_middle_one_of_all() -> None:
    own, beside = started(77.0, eager_cell(), 3 * GIB), started(5_000.0, compiled_cell())
    pool, without = pool_eager([beside, own], 1000), pool_eager([beside], 1000)
    assert (pool.memory_bytes, pool.first_call_us) == (3 * GIB, (77.0 + 5_000.0) / 2)
    assert (without.memory_bytes, without.first_call_us) == (None, 5_000.0)
    assert (pool.warmup_memory_bytes, without.warmup_memory_bytes) == (2 * GIB, 2 * GIB)
    three = [started(us, eager_cell()) for us in (30_000.0, 20_000.0)] + [started(500_000.0, compiled_cell())]
    pool = pool_eager(three, 3)
    assert (pool.first_call_us, pool.soon_us) == (30_000.0, pytest.approx(50_000.0))


def test_a_pooled_device_time_is_the_mean_of_processes_that_came_to_an_end() -> None:
    results = [make_result(eager_cell(), us, share=0.0) for us in (10_000.0, 10_000.0, 40_000.0)]
    half = replace(make_result(compiled_cell(), 99_000.0), outcome="killed")
    pool = pool_eager([*results, half], 1000)
    assert (pool.processes, pool.device_median_us) == (3, pytest.approx(0.9 * 20_000.0))
    assert pool_eager([half], 1000) is None


def as_a_run_would_have_it(processes: tuple[CellResult, ...]) -> Verdict:
    """The verdict of a run whose own process was the first, with all others for `--repeat-process`."""
    sides = []
    for at in range(2):
        own, *others = (form(each, at) for each in processes)
        timing = FormTiming("asked number", None, None, 1.0, (), tuple(each.times for each in others))
        result = FormResult(
            own.name, own.warmup_us, own.times.wall_us, own.times.device_us, None, None, (), None, timing
        )
        sides.append(TimedForm(own.name, result))
    return judge(*sides, ("eager", "compiled"))[0]


def test_several_processes_have_the_verdict_that_a_run_with_as_many_would_have() -> None:
    processes = repeated(compiled_cell(), 1.9, 2.0, 2.1)
    found = read_cell(processes, 1000)
    assert found.verdict == as_a_run_would_have_it(processes)
    verdict = found.verdict
    assert (verdict.basis, verdict.processes, verdict.n, verdict.result) == ("processes", 3, 120, "faster")
    # 4.303 standard errors of three logarithms.
    logs = [math.log(each.speedup) for each in found.processes]
    half = 4.303 * stdev(logs) / math.sqrt(3)
    assert verdict.ci95 == pytest.approx((math.exp(fmean(logs) - half), math.exp(fmean(logs) + half)), rel=1e-6)
    assert verdict.ci95[0] < 1.9 and verdict.ci95[1] > 2.1
    assert [(each.conditions.host, each.conditions.gpu_uuid) for each in found.processes] == [
        (f"host-{number}", f"GPU-{number}") for number in (1, 2, 3)
    ]
    assert found.compiled.median_ci95[0] < 10e3 / 2.1 and found.compiled.median_ci95[1] > 10e3 / 1.9
    assert (found.compiled.calls, found.seconds) == (120, 60.0)
    two = read_cell(processes[:2], 1000)
    assert (two.verdict.processes, two.compiled.median_ci95) == (2, None)
    assert two.verdict.told_range == two.verdict.process_range


def test_what_disturbed_a_later_process_is_told_and_each_kind_once() -> None:
    processes = repeated(compiled_cell(), 1.9, 2.0, 2.1)
    shared = GpuState("nvml", (GpuSample("during", 1.0, 1980, 2600, 400.0, 45, (), 3),))
    notes = [note.code for note in read_cell(processes, 1000).notes]
    disturbed = (processes[0], *(changed(each, 1, gpu_state=shared) for each in processes[1:]))
    assert [note.code for note in read_cell(disturbed, 1000).notes] == [*notes, "gpu_shared"]


def test_a_process_without_times_counts_nowhere_and_is_told() -> None:
    first, second = repeated(compiled_cell(), 2.0, 2.0)
    lost = replace(make_failure(first.cell, "killed", "it died"), started=first.started)
    found = read_cell((lost, second), 1000)
    alone = read_cell((second,), 1000)
    assert (found.outcome, found.verdict, found.compiled) == ("done", alone.verdict, alone.compiled)
    assert [(each.process, each.outcome, each.eager_us is None) for each in found.processes] == [
        (1, "killed", True),
        (2, "done", False),
    ]
    assert statements.ProcessWithoutTimes(process=1, outcome="killed", message="it died") in found.notes
    both = read_cell((lost, replace(lost, process=2)), 1000)
    assert (both.outcome, both.failure, both.compiled) == ("killed", lost.failure, None)


def test_the_middle_one_of_several_processes_starts_counts() -> None:
    starts = [make_result(compiled_cell(), compile_us=us) for us in (30e6, 10e6, 20e6)]
    found = read_cell([replace(each, process=number) for number, each in enumerate(starts, 1)], 1)
    assert (found.first_call_us, found.soon_us, found.compile_seconds) == (20e6, 20e6, 20.0)
