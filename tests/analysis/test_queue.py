from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.reference import TICK
from tests.analysis.test_against_reference import random_events, random_steps
from tests.fuzzing import fuzzed
from tests.traces import Json, analyze, make_call, make_copy, make_kernel, make_op, make_span, make_trace

from tracekit.model.analysis import DeviceQueue


def queue_of(folder: Path, events: list[Json], **options: str) -> DeviceQueue:
    found = analyze(make_trace(folder, events), **options).queue
    assert found is not None
    (queue,) = found
    return queue


def test_a_host_that_runs_ahead_fills_the_queue(tmp_path: Path) -> None:
    calls = [make_call(i * 2, i * 2 + 1, correlation=i + 1) for i in range(3)]
    kernels = [make_kernel(10 + i * 20, 30 + i * 20, correlation=i + 1) for i in range(3)]
    queue = queue_of(tmp_path, [*calls, *kernels, make_span(0, 80)])
    # Handed over at 1, 3, 5; they start at 10, 30, 50 and end at 70.
    assert (queue.items, queue.starved_items, queue.most_depth) == (3, 1, 3)
    assert (queue.delays.count, queue.delays.p50_us, queue.delays.most_us) == (3, 27, 45)
    # Nothing handed over from 0 to 1 and after 70; two and one waiting while the first two run.
    assert (queue.starved_us, queue.delayed_us) == (11, 9)
    assert (queue.backed_up_us, queue.hand_to_mouth_us) == (40, 20)
    assert queue.mean_depth == pytest.approx((9 + 27 + 45) / 80)


def test_a_host_that_is_late_starves_the_gpu(tmp_path: Path) -> None:
    calls = [make_call(i * 50, i * 50 + 5, correlation=i + 1) for i in range(4)]
    kernels = [make_kernel(i * 50 + 7, i * 50 + 17, correlation=i + 1) for i in range(4)]
    queue = queue_of(tmp_path, [*calls, *kernels])
    assert (queue.items, queue.starved_items, queue.most_depth) == (4, 4, 1)
    assert (queue.starved_us, queue.delayed_us) == (3 * 38, 3 * 2)
    assert queue.backed_up_us == 0


def test_a_kernel_that_starts_before_its_call_returns_has_no_delay_and_one_without_a_call_neither(
    tmp_path: Path,
) -> None:
    events = [make_call(0, 10, correlation=1), make_kernel(4, 20, correlation=1), make_kernel(28, 29)]
    queue = queue_of(tmp_path, events)
    assert (queue.items, queue.unlinked, queue.delays.count) == (1, 1, 1)
    assert queue.delays.most_us == 0


def test_a_graph_is_one_item_and_its_kernels_are_counted_apart(tmp_path: Path) -> None:
    replay = make_call(0, 10, name="cudaGraphLaunch", correlation=1)
    kernels = [make_kernel(15 + i * 10, 20 + i * 10, correlation=1) for i in range(5)]
    single = [make_call(11, 12, correlation=2), make_kernel(61, 62, correlation=2)]
    queue = queue_of(tmp_path, [replay, *kernels, *single])
    assert (queue.items, queue.kernels_in_graphs, queue.starved_items) == (2, 5, 1)
    assert (queue.graph_delays.count, queue.graph_delays.p50_us) == (1, 5)
    assert (queue.delays.count, queue.delays.p50_us) == (1, 49)
    # Between kernels of a graph the GPU does not starve: what it does next has been handed over.
    assert (queue.starved_us, queue.delayed_us) == (0, 4 * 5 + 1)


def test_copies_are_in_the_queue_but_have_no_launch_delay_of_a_kernel(tmp_path: Path) -> None:
    events = [make_call(0, 1, name="cudaMemcpyAsync", correlation=1), make_copy(5, 9, correlation=1)]
    queue = queue_of(tmp_path, events)
    assert (queue.items, queue.delays) == (1, None)


def test_where_no_launch_is_recorded_there_is_no_queue_model(tmp_path: Path) -> None:
    assert analyze(make_trace(tmp_path, [make_kernel(0, 1), make_op(0, 1)])).queue is None


@fuzzed(12)
@given(random_events(), random_steps() | st.just([]))
def test_the_four_states_divide_the_window_exactly(
    tmp_path_factory: pytest.TempPathFactory, events: list[Json], steps: list[Json]
) -> None:
    first = steps[0]["ts"] if steps else 0
    sure = [make_call(first, first + TICK, correlation=99), make_kernel(first + 1, first + 2, correlation=99)]
    found = analyze(make_trace(tmp_path_factory.getbasetemp(), [*events, *sure, *steps]))
    for queue, device in zip(found.queue, found.devices, strict=True):
        assert queue.starved_us + queue.delayed_us == pytest.approx(device.idle_us)
        assert queue.hand_to_mouth_us + queue.backed_up_us == pytest.approx(device.busy_us)
        assert min(queue.starved_us, queue.delayed_us, queue.hand_to_mouth_us, queue.backed_up_us) >= 0
        assert queue.starved_items <= queue.items
