from __future__ import annotations

from pathlib import Path

import pytest
from tests.traces import (
    DATA,
    Json,
    analyze,
    make_call,
    make_copy,
    make_kernel,
    make_op,
    make_span,
    make_trace,
    write_trace,
)

from tracekit.analysis import step_timeline
from tracekit.analysis.sequence import list_work
from tracekit.analysis.step_timeline import draw_step
from tracekit.model.timeline import Bars, StepTimeline
from tracekit.tracefile import read_trace


def drawn(folder: Path, events: list[Json], window: str = "auto") -> StepTimeline:
    found = draw_step(make_trace(folder, events), window)
    assert found is not None
    return found


def told(timeline: StepTimeline, bars: Bars) -> list[tuple[str, str, float, float]]:
    labels = [timeline.labels[at] for at in bars.labels]
    return [
        (label.name, label.kind, start, us)
        for label, start, us in zip(labels, bars.starts_us, bars.durations_us, strict=True)
    ]


def test_a_step_is_told_from_its_own_start(tmp_path: Path) -> None:
    events = [
        make_span(100, 200),
        make_call(110, 112, correlation=1),
        make_kernel(120, 140, name="nvjet_gemm", correlation=1),
        make_call(150, 155, correlation=2),
        make_copy(160, 170, correlation=2),
    ]
    found = drawn(tmp_path, events)
    assert (found.step, found.length_us, found.device, found.other_devices) == (0, 100, 0, 0)
    assert told(found, found.work) == [("nvjet_gemm", "gemm", 20, 20), ("Memcpy HtoD", "memcpy", 60, 10)]
    assert told(found, found.host) == [
        ("cudaLaunchKernel", "launch_call", 10, 2),
        ("cudaLaunchKernel", "launch_call", 50, 5),
    ]
    gaps = told(found, found.gaps)
    assert [(start, us) for _, _, start, us in gaps] == [(0, 20), (40, 20), (70, 30)]
    assert {name for name, *_ in gaps} == {"idle"}


def test_a_gap_has_the_cause_of_its_larger_part(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_call(0, 1, correlation=1),
        make_kernel(1, 10, correlation=1),
        make_op(10, 60, name="aten::add"),
        make_call(50, 58, correlation=2),
        make_kernel(62, 100, correlation=2),
    ]
    found = drawn(tmp_path, events)
    assert ("idle", "op_dispatch", 10, 52) in told(found, found.gaps)


def test_streams_are_lanes_and_positions_follow_the_order_of_launches(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_call(1, 2, correlation=1),
        make_call(3, 4, correlation=2),
        make_kernel(50, 60, name="late", stream=7, correlation=1),
        make_kernel(5, 20, name="early", stream=9, correlation=2),
    ]
    trace = make_trace(tmp_path, events)
    found = draw_step(trace)
    assert found is not None
    assert found.streams == (9, 7)
    assert found.work.lanes == (0, 1)
    names = [each.name for each in list_work(trace).activities]
    assert [names[at] for at in found.positions] == ["early", "late"]


def test_the_step_of_median_length_is_told_with_positions_of_one_step(tmp_path: Path) -> None:
    events: list[Json] = []
    for number, (start, end) in enumerate(((0, 100), (200, 500), (600, 720))):
        events += [
            make_span(start, end, name=f"tracekit.step#{number}"),
            make_call(start, start + 1, correlation=number),
        ]
        events.append(make_kernel(start + 5, start + 10, correlation=number))
    found = drawn(tmp_path, events)
    assert (found.step, found.length_us, found.positions) == (2, 120, (0,))


def step_of(start: float, length: float, index: int, names: str, size: int = 8) -> list[Json]:
    """A step that launches each of its kernels, which start in this order, by an operator of its own."""
    events = [make_span(start, start + length, name=f"tracekit.step#{index}")]
    for at, name in enumerate(names):
        begin, correlation = start + 10 * at, 10 * index + at + 1
        events += [
            make_op(begin, begin + 9, **{"Input Dims": [[size]], "Input type": ["float"]}),
            make_call(begin + 1, begin + 2, correlation=correlation),
            make_kernel(begin + 3, begin + 6, name=name, correlation=correlation),
        ]
    return events


def replayed(start: float, length: float, index: int, names: str) -> list[Json]:
    """A step that launches one CUDA graph, whose kernels start in this order."""
    kernels = [
        make_kernel(start + 10 * at, start + 10 * at + 4, name=name, correlation=index)
        for at, name in enumerate(names, start=1)
    ]
    call = make_call(start + 1, start + 2, name="cudaGraphLaunch", correlation=index)
    return [make_span(start, start + length, name=f"tracekit.step#{index}"), call, *kernels]


def test_branches_of_a_cuda_graph_that_swap_are_found_where_the_sequence_has_them(tmp_path: Path) -> None:
    steps = [*replayed(0, 60, 1, "abca"), *replayed(100, 70, 2, "caba"), *replayed(200, 80, 3, "abca")]
    trace = make_trace(tmp_path, steps)
    sequence, found = list_work(trace), draw_step(trace)
    assert found is not None
    assert [each.name for each in sequence.activities] == list("abca")
    assert (found.step, found.positions) == (2, (2, 0, 1, 3))


@pytest.mark.parametrize("sizes", [(8, 16, 16), (8, 16, 8)])
def test_of_steps_that_differ_in_shapes_alone_positions_are_those_of_the_step_drawn(
    tmp_path: Path, sizes: tuple[int, int, int]
) -> None:
    events = [
        each for index, size in enumerate(sizes) for each in step_of(100 * index, 60 + 10 * index, index, "abc", size)
    ]
    trace = read_trace(write_trace(tmp_path, events), shapes=True)
    sequence, found = list_work(trace), draw_step(trace)
    assert found is not None
    assert sequence.starts == (0, 3, 6)
    assert (found.step, found.positions) == (1, (3, 4, 5))


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_step_without_work_is_not_the_one_drawn(tmp_path: Path, empty: int) -> None:
    events: list[Json] = []
    for index in range(3):
        events += step_of(100 * index, 60 if index == empty else 50 + 20 * (index != 2), index, "ab" * (index != empty))
    trace = make_trace(tmp_path, events)
    sequence, found = list_work(trace), draw_step(trace)
    assert found is not None
    assert found.step is not None and found.step != empty
    assert found.positions == tuple(range(sequence.starts[found.step], sequence.starts[found.step] + 2))


def test_beyond_what_is_kept_the_shortest_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_timeline, "MOST_BARS", 2)
    events = [make_kernel(at * 10, at * 10 + at + 1, name=f"k{at}") for at in range(4)]
    found = drawn(tmp_path, events)
    assert [name for name, *_ in told(found, found.work)] == ["k2", "k3"]
    assert found.work.left_out == 2
    assert found.positions == (2, 3)


def test_a_recording_without_steps_is_told_whole_and_one_of_a_cpu_not(tmp_path: Path) -> None:
    found = drawn(tmp_path, [make_kernel(5, 10), make_kernel(20, 25, device=1)])
    assert (found.step, found.other_devices, found.work.starts_us) == (None, 1, (0,))
    assert found.host == Bars((), (), (), (), 0)
    assert draw_step(make_trace(tmp_path, [make_op(0, 10)])) is None


@pytest.mark.parametrize("name", ["vit_eager", "vit_default", "vit_reduce-overhead"])
def test_work_and_gaps_of_a_real_step_fill_it_as_the_analysis_says(name: str) -> None:
    trace, window = read_trace(DATA / f"{name}.json.gz"), r"tracekit\.iteration#\d+"
    found, steps = draw_step(trace, window), analyze(trace, window=window).steps
    assert found is not None
    step = next(each for each in steps if each.index == found.step)
    assert sum(found.gaps.durations_us) == pytest.approx(step.idle_us)
    assert found.length_us == pytest.approx(sum(found.gaps.durations_us) + step.busy_us)
    sequence = list_work(trace, window)
    assert [sequence.activities[at].name for at in found.positions] == [
        found.labels[at].name for at in found.work.labels
    ]
