from pathlib import Path

import pytest
from tests.traces import (
    Json,
    analyze,
    make_call,
    make_copy,
    make_kernel,
    make_op,
    make_replay,
    make_span,
    make_step,
    make_steps,
    make_trace,
    recording,
    write_trace,
)

from tracekit.analysis import sequence
from tracekit.analysis.sequence import list_and_draw, list_work
from tracekit.model.sequence import Sequence
from tracekit.model.timeline import Bars, StepTimeline
from tracekit.reading.traces import Reading
from tracekit.tracefile.read import read_trace


def drawn(folder: Path, events: list[Json]) -> tuple[StepTimeline, Sequence]:
    """With the sequence whose positions it has."""
    trace = read_trace(write_trace(folder, events), shapes=True)
    found = list_and_draw(trace)[1]
    assert found is not None
    return found, list_work(trace)


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
    found, _ = drawn(tmp_path, events)
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
    found, _ = drawn(tmp_path, events)
    assert ("idle", "op_dispatch", 10, 52) in told(found, found.gaps)


def test_streams_are_lanes_and_positions_follow_the_order_of_launches(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_call(1, 2, correlation=1),
        make_call(3, 4, correlation=2),
        make_kernel(50, 60, name="late", stream=7, correlation=1),
        make_kernel(5, 20, name="early", stream=9, correlation=2),
    ]
    found, sequence = drawn(tmp_path, events)
    assert (found.streams, found.work.lanes) == ((9, 7), (0, 1))
    assert [sequence.activities[at].name for at in found.positions] == ["early", "late"]


@pytest.mark.parametrize(
    ("events", "step", "positions", "starts"),
    [
        # Of median length, with positions of one step.
        ([*make_step(0, "a"), *make_step(2, "a", length=300), *make_step(6, "a", length=120)], 6, (0,), ()),
        # Branches of a CUDA graph that swap are found where the sequence has them.
        (
            [*make_replay(0, "abca", length=60), *make_replay(1, "caba", length=70), *make_replay(2, "abca")],
            *(1, (2, 0, 1, 3), ()),
        ),
        # Of steps that differ in shapes alone positions are those of the step drawn.
        (make_steps(("ab", 60, 8), ("ab", 61, 16), ("ab", 62, 8)), 1, (2, 3), (0, 2, 4)),
        (make_steps(("ab", 60, 8), ("ab", 61, 16), ("ab", 62, 16)), 1, (2, 3), (0, 2, 4)),
        # A step without work is not the one drawn, though its length is in the middle.
        (make_steps(("", 60, 8), ("ab", 70, 8), ("ab", 50, 8)), 2, (2, 3), (0, 0, 2)),
        (make_steps(("ab", 70, 8), ("", 60, 8), ("ab", 50, 8)), 2, (2, 3), (0, 2, 2)),
        (make_steps(("ab", 70, 8), ("ab", 50, 8), ("", 60, 8)), 1, (2, 3), (0, 2, 4)),
    ],
)
def test_the_step_of_median_length_is_told_with_its_places_in_the_sequence(
    tmp_path: Path, events: list[Json], step: int, positions: tuple[int, ...], starts: tuple[int, ...]
) -> None:
    found, sequence = drawn(tmp_path, events)
    assert (found.step, found.positions, sequence.starts) == (step, positions, starts)


def test_beyond_what_is_kept_the_shortest_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence, "MOST_BARS", 2)
    events = [make_kernel(at * 10, at * 10 + at + 1, name=f"k{at}") for at in range(4)]
    found, _ = drawn(tmp_path, events)
    assert [name for name, *_ in told(found, found.work)] == ["k2", "k3"]
    assert found.work.left_out == 2
    assert found.positions == (2, 3)


def test_a_recording_without_steps_is_told_whole_and_one_of_a_cpu_not(tmp_path: Path) -> None:
    found, _ = drawn(tmp_path, [make_kernel(5, 10), make_kernel(20, 25, device=1)])
    assert (found.step, found.other_devices, found.work.starts_us) == (None, 1, (0,))
    assert found.host == Bars((), (), (), (), 0)
    without = Reading(shapes=True, cpu=True).look(make_trace(tmp_path, [make_op(0, 10)]))
    assert without[1:] == (None, None)


@pytest.mark.parametrize("name", ["vit_eager", "vit_default", "vit_reduce-overhead"])
def test_work_and_gaps_of_a_real_step_fill_it_as_the_analysis_says(name: str) -> None:
    trace, window = read_trace(recording(name)), r"tracekit\.iteration#\d+"
    found, steps = list_and_draw(trace, window)[1], analyze(trace, window=window).steps
    assert found is not None
    step = next(each for each in steps if each.index == found.step)
    assert sum(found.gaps.durations_us) == pytest.approx(step.idle_us)
    assert found.length_us == pytest.approx(sum(found.gaps.durations_us) + step.busy_us)
    sequence = list_work(trace, window)
    assert [sequence.activities[at].name for at in found.positions] == [
        found.labels[at].name for at in found.work.labels
    ]
