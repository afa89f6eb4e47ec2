"""Each finding, where it is due and where it is not."""

from pathlib import Path
from typing import Any

import pytest
from tests.traces import (
    Json,
    analyze,
    launched,
    make_call,
    make_event,
    make_kernel,
    make_op,
    make_span,
    make_trace,
    write_trace,
)

from tracekit.model.analysis import Health
from tracekit.tracefile.read import read_trace


def health_of(folder: Path, events: list[Json], **top: object) -> dict[str, Health]:
    return {each.code: each for each in analyze(make_trace(folder, events, **top), cpu=True).health}


def of_process(pid: int, event: Json) -> Json:
    return {**event, "pid": pid}


SOUND = [make_call(10, 11, correlation=1), make_kernel(12, 13, correlation=1)]
STEP = [make_span(100, 110), *launched(101, 1, 1)]
COMPILING = "inductor_compile (dynamo_timed)"
STACK = make_event("python_function", 0, 1, name="model.py(3): forward")
#: As an H200 showed it: cuBLASLt sums the parts of a matmul from before the matmul's last block has ended.
MATMUL, EARLY = make_kernel(2, 16, correlation=1), make_kernel(14.6, 17, correlation=2)
PLAIN = [make_call(0, 1, correlation=1), make_call(1, 2, correlation=2)]
DEPENDENT = [PLAIN[0], make_call(1, 2, correlation=2, name="cudaLaunchKernelExC")]
OTHER_CALL = {**make_call(5, 6, correlation=1), "tid": 2}
NAMELESS = {**make_kernel(2, 3), "pid": "GPU", "args": {}}
BEFORE_THE_FIRST = {**make_kernel(4, 5), "args": {"device": -1}}
BACKWARD = {**make_kernel(1, 2), "dur": -1}
TEN = [make_kernel(i * 2, i * 2 + 1) for i in range(1, 11)]
EPOCH = [make_kernel(1_731_234_567_890_123 + i, 1_731_234_567_890_124 + i) for i in range(3)]
SPANS = [make_span(at, at + 10, name=f"tracekit.step#{at}") for at in (0, 20, 40)]
CAPTURED = [
    make_call(0, 1, name="cudaStreamBeginCapture", correlation=1),
    make_call(1, 2, correlation=2),
    make_call(2, 3, correlation=3),
    make_call(3, 4, name="cudaStreamEndCapture", correlation=4),
    make_call(4, 5, name="cudaGraphLaunch", correlation=5),
    make_kernel(6, 7, correlation=5),
    make_call(8, 9, name="cudaLaunchHostFunc_v10000", correlation=6),
]


def steps_from(first_us: float) -> list[Json]:
    spans = [(0, first_us), *((100 + 20 * i, 110 + 20 * i) for i in range(3))]
    return [
        event
        for i, (begin, end) in enumerate(spans)
        for event in (make_span(begin, end, name=f"ProfilerStep#{i}"), *launched(begin, 1, i + 1))
    ]


OVERLAPPING_STEPS = [
    *(make_span(10 * i, 10 * i + 10, name=f"ProfilerStep#{i}") for i in range(2)),
    *(make_call(10 * i + 1, 10 * i + 2, correlation=i + 1) for i in range(2)),
    make_kernel(3, 15, correlation=1),
    make_kernel(15, 18, correlation=2),
]
FROM_OUTSIDE = [
    make_call(0, 1, correlation=1),
    make_span(10, 30),
    make_call(11, 12, correlation=2),
    make_kernel(8, 20, correlation=1),
    make_kernel(20, 25, correlation=2),
]
TWO_RANKS = [of_process(1, make_call(0, 1, correlation=1)), make_kernel(5, 10, correlation=1)]
TWO_RANKS += [of_process(2, make_call(0, 1, correlation=2)), make_kernel(5, 10, correlation=2, stream=8)]
#: Rank 2's last launch was dropped; rank 1 has a call of the same id.
EACH_ITS_GPU = [of_process(1, make_call(i, i + 0.5, correlation=i + 1)) for i in range(12)]
EACH_ITS_GPU += [make_kernel(20 + i, 20.5 + i, correlation=i + 1) for i in range(12)]
EACH_ITS_GPU += [of_process(2, make_call(i, i + 0.5, correlation=100 + i)) for i in range(12)]
EACH_ITS_GPU += [make_kernel(20 + i, 20.5 + i, correlation=100 + i, device=1) for i in range(12)]
EACH_ITS_GPU += [make_kernel(60, 61, correlation=3, device=1)]

#: The finding's code, severity, count and facts (None: whatever they are), and the events.
DUE: list[tuple[str, str, int, dict[str, Any] | None, list[Json]]] = [
    ("skipped_events", "error", 1, {"reasons": {"negative duration": 1}}, [make_kernel(0, 1), BACKWARD]),
    ("compile_in_window", "warning", 1, None, [make_kernel(0, 1), make_op(0, 1, name=COMPILING)]),
    ("compile_in_window", "warning", 1, None, [*STEP, make_op(0, 90, name=COMPILING), make_op(0, 101, name=COMPILING)]),
    ("python_stacks_recorded", "warning", 1, {"host_slower_up_to": 4}, [make_kernel(0, 1), STACK]),
    ("overlapping_kernels", "warning", 1, {"overlap_up_to_us": 5.0}, [make_kernel(0, 10), make_kernel(5, 15)]),
    ("overlapping_kernels", "warning", 1, {"overlap_up_to_us": pytest.approx(1.4)}, [MATMUL, EARLY, *PLAIN]),
    ("overlapping_kernels", "warning", 1, None, [MATMUL, make_kernel(14.6, 15, correlation=2), *DEPENDENT]),
    ("overlapping_kernels", "warning", 10, None, [make_kernel(0, 100), *TEN]),
    ("ambiguous_correlations", "warning", 1, None, [*SOUND, OTHER_CALL]),
    ("ambiguous_correlations", "warning", 1, None, [*SOUND, of_process(200, OTHER_CALL)]),
    ("unnamed_device", "warning", 1, None, [make_kernel(0, 1), NAMELESS]),
    ("unnamed_device", "warning", 2, None, [make_kernel(0, 1), {**NAMELESS, "pid": 48213}, BEFORE_THE_FIRST]),
    ("overlapping_steps", "warning", 2, {"overlap_us": 5.0}, OVERLAPPING_STEPS),
    ("work_from_outside", "warning", 1, {"outside_us": 10.0}, FROM_OUTSIDE),
    ("unlinked_kernels", "warning", 2, {}, [make_kernel(0, 1), make_kernel(2, 3)]),
    ("clock_disorder", "warning", 1, {"early_by_up_to_us": 5.0}, [SOUND[0], make_kernel(5, 12, correlation=1)]),
    ("launches_without_kernels", "info", 1, {"in_the_middle": 0}, [make_call(0, 1, correlation=9), *SOUND]),
    ("launches_without_kernels", "warning", 1, {"in_the_middle": 1}, [make_call(20, 21, correlation=9), *SOUND]),
    *(
        ("launches_without_kernels", "warning", 1, None, [*SOUND, make_call(20, 21, name=name, correlation=2)])
        for name in ("zeCommandListAppendLaunchKernel", "topsLaunchKernel", "hipHccModuleLaunchKernel")
    ),
    ("duplicated_events", "warning", 1, None, [SOUND[1], SOUND[1], make_kernel(20, 30)]),
    ("slow_first_step", "warning", 1, {"times_the_others": 3.0}, steps_from(30)),
    ("several_processes", "warning", 2, {"shared_gpus": [0]}, TWO_RANKS),
    ("several_processes", "info", 2, {"shared_gpus": []}, EACH_ITS_GPU),
    ("unlinked_kernels", "warning", 1, None, EACH_ITS_GPU),
    ("no_gpu_activity", "info", 0, {"host_calls": 0}, [make_op(0, 1)]),
    ("no_gpu_activity", "warning", 1, {"host_calls": 1}, [make_op(0, 1), make_call(0, 1)]),
    ("implausible_times", "warning", 1, None, [*TEN, make_kernel(30, 3e9)]),
    ("implausible_times", "warning", 1, None, [*TEN, make_kernel(3e9, 3e9 + 1)]),
    ("coarse_times", "warning", 1, None, [{**each, "ts": each["ts"] + 0.25} for each in EPOCH]),
    ("empty_steps", "warning", 2, {"empty_steps": 2, "steps": 3}, [*SPANS, make_kernel(21, 22)]),
]
NOT_DUE: list[tuple[str, list[Json]]] = [
    ("compile_in_window", [*STEP, make_op(0, 90, name=COMPILING)]),
    ("overlapping_kernels", [make_kernel(0, 10), make_kernel(5, 15, stream=8)]),
    ("overlapping_kernels", [make_kernel(0, 10), make_kernel(9.5, 15)]),
    ("overlapping_kernels", [MATMUL, EARLY, *DEPENDENT]),
    ("ambiguous_correlations", [make_kernel(2, 3, correlation=2), *PLAIN, OTHER_CALL]),
    ("unnamed_device", [make_kernel(0, 1), {**NAMELESS, "pid": "GPU 3"}]),
    ("clock_disorder", [SOUND[0], make_kernel(9.5, 12, correlation=1)]),
    ("launches_without_kernels", [make_call(20, 21, name="cudaStreamSynchronize", correlation=9), *SOUND]),
    ("launches_without_kernels", CAPTURED),
    ("slow_first_step", steps_from(11)),
    ("several_processes", SOUND),
    ("implausible_times", TEN),
    ("coarse_times", EPOCH),
    ("empty_steps", [*SPANS, make_kernel(1, 2), make_kernel(21, 22), make_kernel(41, 42)]),
    ("empty_steps", [make_kernel(0, 1)]),
    ("unlinkable_launches", [*SOUND, make_kernel(24, 25), make_call(24, 25)]),
    ("unlinkable_launches", [make_call(0, 1, name="cudaDeviceSynchronize"), make_kernel(2, 3)]),
    ("unlinkable_launches", [make_kernel(2, 3)]),
]


@pytest.mark.parametrize(("code", "severity", "count", "facts", "events"), DUE)
def test_what_is_wrong_is_found(
    tmp_path: Path, code: str, severity: str, count: int, facts: dict[str, Any] | None, events: list[Json]
) -> None:
    found = health_of(tmp_path, events)[code]
    assert (found.severity, found.count) == (severity, count)
    assert facts in (None, found.facts)


@pytest.mark.parametrize(("code", "events"), NOT_DUE)
def test_what_is_sound_is_not_found_wrong(tmp_path: Path, code: str, events: list[Json]) -> None:
    assert code not in health_of(tmp_path, events)


def test_a_sound_recording_with_steps_has_no_findings(tmp_path: Path) -> None:
    assert health_of(tmp_path, [*STEP, make_op(100, 102)]) == {}


def test_a_truncated_file_is_an_error_and_comes_first(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_kernel(i, i + 0.5) for i in range(10)])
    path.write_bytes(path.read_bytes()[:-60])
    found = analyze(read_trace(path)).health
    assert (found[0].code, found[0].severity) == ("truncated", "error")


def test_what_the_file_says_of_itself_counts(tmp_path: Path) -> None:
    assert "python_stacks_recorded" in health_of(tmp_path, [make_kernel(0, 1)], with_stack=1)
    assert "no_gpu_activity" not in health_of(tmp_path, [make_op(0, 1)], tracekit={"device": "cpu"})


def test_work_from_outside_is_in_the_busy_time(tmp_path: Path) -> None:
    gpu = analyze(make_trace(tmp_path, FROM_OUTSIDE)).gpu
    assert (gpu.busy_us, gpu.outside_us) == (15, 10)


def test_the_number_of_a_process_is_not_taken_for_a_gpu_s(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, [make_kernel(0, 1), {**NAMELESS, "pid": 48213}])
    assert [device.id for device in analyze(trace).devices] == [0]


LAUNCHES = ["cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch"]
LAUNCHES += ["hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipGraphLaunch"]


@pytest.mark.parametrize("name", LAUNCHES)
@pytest.mark.parametrize("missing", ["kernels", "calls", "kernels and calls"])
def test_launches_that_cannot_be_linked_are_counted_where_ids_are_missing(
    tmp_path: Path, name: str, missing: str
) -> None:
    calls = [make_call(i, i + 1, name=name, correlation=0 if "calls" in missing else i) for i in range(1, 7)]
    kernels = [make_kernel(i, i + 1, correlation=None if "kernels" in missing else i) for i in range(3, 9)]
    found = analyze(make_trace(tmp_path, [*calls, make_call(8, 9, name="cudaDeviceSynchronize"), *kernels]))
    codes = {each.code: (each.severity, each.count) for each in found.health}
    assert codes["unlinkable_launches"] == ("warning", 6)
    # They are there, so nothing was lost.
    assert "launches_without_kernels" not in codes
    assert (found.launches.count, found.launches.unlinked_kernels) == (0, 6)
