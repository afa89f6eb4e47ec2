from __future__ import annotations

from pathlib import Path

import pytest
from tests.traces import Json, make_call, make_event, make_kernel, make_op, make_span, make_trace, write_trace

from tracekit.analysis import analyze
from tracekit.model.analysis import HealthFinding
from tracekit.model.trace import Trace
from tracekit.tracefile import read_trace


def health_of(folder: Path, events: list[Json], **top: object) -> dict[str, HealthFinding]:
    return {each.code: each for each in analyze(make_trace(folder, events, **top)).health}


def test_a_sound_recording_with_steps_has_no_findings(tmp_path: Path) -> None:
    events = [make_span(0, 10), make_op(0, 2), make_call(0, 1, correlation=1), make_kernel(2, 3, correlation=1)]
    assert health_of(tmp_path, events) == {}


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_kernel(i, i + 0.5) for i in range(10)])
    path.write_bytes(path.read_bytes()[:-60])
    found = analyze(read_trace(path)).health
    assert (found[0].code, found[0].severity) == ("truncated", "error")


def test_events_left_out_are_counted_by_reason(tmp_path: Path) -> None:
    found = health_of(tmp_path, [make_kernel(0, 1), {**make_kernel(1, 2), "dur": -1}])["skipped_events"]
    assert (found.severity, found.count) == ("error", 1)
    assert found.facts == {"reasons": {"negative duration": 1}}


def test_compiling_while_recording_is_a_warning(tmp_path: Path) -> None:
    found = health_of(tmp_path, [make_kernel(0, 1), make_op(0, 1, name="inductor_compile (dynamo_timed)")])
    assert found["compile_in_window"].severity == "warning"


def test_compiling_outside_the_steps_is_not_theirs(tmp_path: Path) -> None:
    step = [make_span(100, 110), make_call(101, 102, correlation=1), make_kernel(103, 104, correlation=1)]
    before = make_op(0, 90, name="inductor_compile (dynamo_timed)")
    assert "compile_in_window" not in health_of(tmp_path, [*step, before])
    reaching_in = make_op(0, 101, name="inductor_compile (dynamo_timed)")
    assert health_of(tmp_path, [*step, before, reaching_in])["compile_in_window"].count == 1


def test_python_stacks_are_a_warning(tmp_path: Path) -> None:
    stack = make_event("python_function", 0, 1, name="model.py(3): forward")
    assert "python_stacks_recorded" in health_of(tmp_path, [make_kernel(0, 1), stack])
    assert "python_stacks_recorded" in health_of(tmp_path, [make_kernel(0, 1)], with_stack=1)


def test_kernels_of_one_stream_that_overlap_are_a_warning(tmp_path: Path) -> None:
    assert "overlapping_kernels" in health_of(tmp_path, [make_kernel(0, 10), make_kernel(5, 15)])
    assert "overlapping_kernels" not in health_of(tmp_path, [make_kernel(0, 10), make_kernel(5, 15, stream=8)])
    assert "overlapping_kernels" not in health_of(tmp_path, [make_kernel(0, 10), make_kernel(9.5, 15)])


def test_a_kernel_that_was_let_begin_early_is_no_overlap_to_doubt(tmp_path: Path) -> None:
    # As an H200 showed it: cuBLASLt sums the parts of a product from before the product's last block has ended.
    product = make_kernel(2, 16, correlation=1)
    launches = [make_call(0, 1, correlation=1), make_call(1, 2, correlation=2, name="cudaLaunchKernelExC")]
    early = make_kernel(14.6, 17, correlation=2)
    assert "overlapping_kernels" not in health_of(tmp_path, [product, early, *launches])
    plain = [launches[0], make_call(1, 2, correlation=2)]
    found = health_of(tmp_path, [product, early, *plain])["overlapping_kernels"]
    assert (found.count, found.facts) == (1, {"overlap_up_to_us": pytest.approx(1.4)})
    within = make_kernel(14.6, 15, correlation=2)
    assert "overlapping_kernels" in health_of(tmp_path, [product, within, *launches])


def test_correlation_ids_of_several_calls_are_a_warning(tmp_path: Path) -> None:
    one, other = make_call(0, 1, correlation=1), {**make_call(5, 6, correlation=1), "pid": 200}
    assert health_of(tmp_path, [make_kernel(2, 3, correlation=1), one, other])["ambiguous_correlations"].count == 1
    same = {**other, "pid": one["pid"], "tid": 2}
    assert health_of(tmp_path, [make_kernel(2, 3, correlation=1), one, same])["ambiguous_correlations"].count == 1
    assert "ambiguous_correlations" not in health_of(
        tmp_path, [make_kernel(2, 3, correlation=2), one, same, make_call(1, 2, correlation=2)]
    )


def test_a_kernel_of_no_known_gpu_is_a_warning(tmp_path: Path) -> None:
    nameless = {**make_kernel(2, 3), "pid": "GPU", "args": {}}
    assert health_of(tmp_path, [make_kernel(0, 1), nameless])["unnamed_device"].count == 1
    numbered = {**nameless, "pid": "GPU 3"}
    assert "unnamed_device" not in health_of(tmp_path, [make_kernel(0, 1), numbered])


def test_the_number_of_a_process_is_not_taken_for_a_gpu_s(tmp_path: Path) -> None:
    nameless = [{**make_kernel(2, 3), "pid": 48213, "args": {}}, {**make_kernel(4, 5), "args": {"device": -1}}]
    found = analyze(make_trace(tmp_path, [make_kernel(0, 1), *nameless]))
    assert [device.id for device in found.devices] == [0]
    assert {each.code: each.count for each in found.health}["unnamed_device"] == 2


def test_steps_that_share_time_on_the_gpu_are_a_warning(tmp_path: Path) -> None:
    events = [
        make_span(0, 10, name="ProfilerStep#0"),
        make_span(10, 20, name="ProfilerStep#1"),
        make_call(1, 2, correlation=1),
        make_call(11, 12, correlation=2),
        make_kernel(3, 15, correlation=1),
        make_kernel(15, 18, correlation=2),
    ]
    assert health_of(tmp_path, events)["overlapping_steps"].facts == {"overlap_us": 5.0}


def test_work_launched_outside_the_steps_is_a_warning(tmp_path: Path) -> None:
    events = [
        make_call(0, 1, correlation=1),
        make_span(10, 30),
        make_call(11, 12, correlation=2),
        make_kernel(8, 20, correlation=1),
        make_kernel(20, 25, correlation=2),
    ]
    assert health_of(tmp_path, events)["work_from_outside"].facts == {"outside_us": 10.0}
    analysis = analyze(make_trace(tmp_path, events))
    assert analysis.gpu is not None
    assert (analysis.gpu.busy_us, analysis.gpu.outside_us) == (15, 10)


def test_kernels_without_a_launch_are_counted(tmp_path: Path) -> None:
    assert health_of(tmp_path, [make_kernel(0, 1), make_kernel(2, 3)])["unlinked_kernels"].count == 2


def test_kernels_that_begin_before_their_launch_are_a_clock_out_of_order(tmp_path: Path) -> None:
    found = health_of(tmp_path, [make_call(10, 11, correlation=1), make_kernel(5, 12, correlation=1)])["clock_disorder"]
    assert (found.severity, found.count) == ("warning", 1)
    assert found.facts == {"early_by_up_to_us": 5.0}
    nearly = [make_call(10, 11, correlation=1), make_kernel(9.5, 12, correlation=1)]
    assert "clock_disorder" not in health_of(tmp_path, nearly)


def test_launches_without_kernels_are_told_apart_by_where_they_are(tmp_path: Path) -> None:
    sound = [make_call(10, 11, correlation=1), make_kernel(12, 13, correlation=1)]
    early = health_of(tmp_path, [make_call(0, 1, correlation=9), *sound])["launches_without_kernels"]
    assert (early.severity, early.count, early.facts) == ("info", 1, {"in_the_middle": 0})
    late = health_of(tmp_path, [make_call(20, 21, correlation=9), *sound])["launches_without_kernels"]
    assert (late.severity, late.count, late.facts) == ("warning", 1, {"in_the_middle": 1})
    waiting = [make_call(20, 21, name="cudaStreamSynchronize", correlation=9), *sound]
    assert "launches_without_kernels" not in health_of(tmp_path, waiting)


def test_activities_that_are_in_the_file_twice_are_a_warning(tmp_path: Path) -> None:
    kernel = make_kernel(0, 1, correlation=1)
    assert health_of(tmp_path, [kernel, kernel, make_kernel(2, 3)])["duplicated_events"].count == 1


def test_a_first_step_much_longer_than_the_others_is_a_warning(tmp_path: Path) -> None:
    def steps(first: float) -> list[Json]:
        spans = [(0, first), *((100 + 20 * i, 110 + 20 * i) for i in range(3))]
        events = [make_span(begin, end, name=f"ProfilerStep#{i}") for i, (begin, end) in enumerate(spans)]
        for i, (begin, _) in enumerate(spans):
            events += [
                make_call(begin, begin + 1, correlation=i + 1),
                make_kernel(begin + 2, begin + 3, correlation=i + 1),
            ]
        return events

    assert health_of(tmp_path, steps(30))["slow_first_step"].facts == {"times_the_others": 3.0}
    assert "slow_first_step" not in health_of(tmp_path, steps(11))


def test_several_processes_that_call_the_gpu_are_said(tmp_path: Path) -> None:
    one = [make_call(0, 1, correlation=1), make_kernel(2, 3, correlation=1)]
    other = [{**make_call(0, 1, correlation=2), "pid": 200}, make_kernel(2, 3, device=1, correlation=2)]
    assert health_of(tmp_path, one + other)["several_processes"].count == 2
    assert "several_processes" not in health_of(tmp_path, one)


def test_a_recording_without_a_gpu_says_why_that_may_be(tmp_path: Path) -> None:
    def found(*events: Json, **top: object) -> dict[str, HealthFinding]:
        return {each.code: each for each in analyze(make_trace(tmp_path, [*events], **top), cpu=True).health}

    assert found(make_op(0, 1))["no_gpu_activity"].facts == {"host_calls": 0}
    assert found(make_op(0, 1), make_call(0, 1))["no_gpu_activity"].severity == "warning"
    assert "no_gpu_activity" not in found(make_op(0, 1), tracekit={"device": "cpu"})


def codes(trace: Trace) -> dict[str, tuple[str, int]]:
    return {each.code: (each.severity, each.count) for each in analyze(trace).health}


def of_process(pid: int, event: Json) -> Json:
    return {**event, "pid": pid}


def test_ranks_that_share_a_number_of_a_gpu_are_warned_of(tmp_path: Path) -> None:
    events = [
        of_process(1, make_call(0, 1, correlation=1)),
        make_kernel(5, 10, correlation=1),
        of_process(2, make_call(0, 1, correlation=2)),
        make_kernel(5, 10, correlation=2, stream=8),
    ]
    found = codes(make_trace(tmp_path, events))
    assert found["several_processes"] == ("warning", 2)


def test_no_process_launches_on_the_gpu_of_another(tmp_path: Path) -> None:
    events = [of_process(1, make_call(i, i + 0.5, correlation=i + 1)) for i in range(12)]
    events += [make_kernel(20 + i, 20.5 + i, correlation=i + 1) for i in range(12)]
    events += [of_process(2, make_call(i, i + 0.5, correlation=100 + i)) for i in range(12)]
    events += [make_kernel(20 + i, 20.5 + i, correlation=100 + i, device=1) for i in range(12)]
    # Its own launch was dropped; rank 1 has a call of the same id.
    events.append(make_kernel(60, 61, correlation=3, device=1))
    found = codes(make_trace(tmp_path, events))
    assert found["unlinked_kernels"] == ("warning", 1)
    assert found["several_processes"][0] == "info"


def test_launches_into_a_graph_have_no_kernels_of_their_own(tmp_path: Path) -> None:
    events = [
        make_call(0, 1, name="cudaStreamBeginCapture", correlation=1),
        make_call(1, 2, correlation=2),
        make_call(2, 3, correlation=3),
        make_call(3, 4, name="cudaStreamEndCapture", correlation=4),
        make_call(4, 5, name="cudaGraphLaunch", correlation=5),
        make_kernel(6, 7, correlation=5),
        make_call(8, 9, name="cudaLaunchHostFunc_v10000", correlation=6),
    ]
    assert "launches_without_kernels" not in codes(make_trace(tmp_path, events))


@pytest.mark.parametrize("name", ["zeCommandListAppendLaunchKernel", "topsLaunchKernel", "hipHccModuleLaunchKernel"])
def test_lost_kernels_of_every_vendor_are_missed(tmp_path: Path, name: str) -> None:
    events = [
        make_call(0, 1, correlation=1),
        make_kernel(2, 3, correlation=1),
        make_call(4, 5, name=name, correlation=2),
    ]
    assert codes(make_trace(tmp_path, events))["launches_without_kernels"] == ("warning", 1)


@pytest.mark.parametrize("broken", [make_kernel(30, 3e9), make_kernel(3e9, 3e9 + 1)])
def test_one_time_that_dwarfs_all_others_is_doubted(tmp_path: Path, broken: Json) -> None:
    events = [make_kernel(i * 2, i * 2 + 1) for i in range(10)]
    assert "implausible_times" not in codes(make_trace(tmp_path, events))
    assert codes(make_trace(tmp_path, [*events, broken]))["implausible_times"] == ("warning", 1)


def test_epoch_times_with_fractions_are_said_to_be_coarse(tmp_path: Path) -> None:
    epoch = 1_731_234_567_890_123
    whole = [make_kernel(epoch + i, epoch + i + 1) for i in range(3)]
    assert "coarse_times" not in codes(make_trace(tmp_path, whole))
    fractions = [{**each, "ts": each["ts"] + 0.25} for each in whole]
    assert codes(make_trace(tmp_path, fractions))["coarse_times"] == ("warning", 1)


def test_one_kernel_over_many_overlaps_with_each(tmp_path: Path) -> None:
    events = [make_kernel(0, 100), *(make_kernel(5 * i, 5 * i + 2) for i in range(1, 11))]
    assert codes(make_trace(tmp_path, events))["overlapping_kernels"] == ("warning", 10)


def test_steps_without_gpu_work_are_counted_and_said_to_be_in_the_figures(tmp_path: Path) -> None:
    spans = [make_span(at, at + 10, name=f"tracekit.step#{at}") for at in (0, 20, 40)]
    work = [make_kernel(1, 2), make_kernel(21, 22), make_kernel(41, 42)]
    assert "empty_steps" not in health_of(tmp_path, [*spans, *work])
    found = health_of(tmp_path, [*spans, work[1]])["empty_steps"]
    assert (found.severity, found.count) == ("warning", 2)
    assert found.facts == {"empty_steps": 2, "steps": 3}


def test_a_recording_without_steps_has_no_empty_ones(tmp_path: Path) -> None:
    assert "empty_steps" not in health_of(tmp_path, [make_kernel(0, 1)])


LAUNCHES = ["cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch"]
LAUNCHES += ["hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipGraphLaunch"]


@pytest.mark.parametrize("name", LAUNCHES)
@pytest.mark.parametrize("missing", [("kernels",), ("calls",), ("kernels", "calls")])
def test_launches_that_cannot_be_linked_are_counted_where_ids_are_missing(
    tmp_path: Path, name: str, missing: tuple[str, ...]
) -> None:
    calls = [make_call(i, i + 1, name=name, correlation=0 if "calls" in missing else i) for i in range(1, 7)]
    kernels = [make_kernel(i, i + 1, correlation=None if "kernels" in missing else i) for i in range(3, 9)]
    events = [*calls, make_call(8, 9, name="cudaDeviceSynchronize", correlation=9), *kernels]
    trace = make_trace(tmp_path, events)
    assert codes(trace)["unlinkable_launches"] == ("warning", 6)
    # They are there, so nothing was lost.
    assert "launches_without_kernels" not in codes(trace)
    launches = analyze(trace).launches
    assert launches is not None
    assert (launches.count, launches.unlinked_kernels) == (0, 6)


def test_launches_that_are_linked_or_not_there_are_not_said_to_be_unlinkable(tmp_path: Path) -> None:
    sound = [make_call(0, 1, correlation=1), make_kernel(2, 3, correlation=1), make_kernel(4, 5), make_call(4, 5)]
    waiting = [make_call(0, 1, name="cudaDeviceSynchronize"), make_kernel(2, 3)]
    for events in (sound, waiting, [make_kernel(2, 3)]):
        assert "unlinkable_launches" not in codes(make_trace(tmp_path, events))
