"""Every figure of an analysis against one worked out slowly and obviously (see reference.py)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.reference import TICK, Reference
from tests.fuzzing import fuzzed
from tests.traces import Json, analyze, make_call, make_event, make_kernel, make_op, make_span, make_trace

from tracekit.model.analysis import Analysis

moments = st.integers(0, 160)
threads = st.sampled_from([1, 2])


@st.composite
def random_events(draw: st.DrawFn) -> list[Json]:
    """Two GPUs, two streams, two threads; launches that are missing, late or share an id; host events that overlap."""
    events: list[Json] = []
    for number in range(draw(st.integers(2, 8))):
        correlation = draw(st.sampled_from([number + 1, number + 1, 1]))
        begin, length = draw(moments) * TICK, draw(st.integers(1, 30)) * TICK
        device, stream = draw(st.sampled_from([0, 0, 1])), draw(st.sampled_from([7, 8]))
        kernel = make_kernel(
            begin,
            begin + length,
            name=draw(st.sampled_from(["gemm", "softmax"])),
            device=device,
            stream=stream,
            correlation=correlation,
        )
        kind = draw(st.sampled_from(["kernel", "kernel", "kernel", "gpu_memcpy", "gpu_memset"]))
        events.append({**kernel, "cat": kind})
        for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
            launch, took = draw(moments) * TICK, draw(st.integers(1, 10)) * TICK
            events.append(make_call(launch, launch + took, correlation=correlation, thread=draw(threads)))
    names = ["aten::add", "TorchDynamo Cache Lookup", "Torch-Compiled Region: 0/0", "Pregraph bytecode"]
    names += ["## Call CompiledFxGraph a ##", "triton_poi_fused_add_0", "x (dynamo_timed)"]
    for _ in range(draw(st.integers(0, 8))):
        begin, length, thread = draw(moments) * TICK, draw(st.integers(0, 60)) * TICK, draw(threads)
        kind = draw(st.sampled_from(["op", "op", "sync", "overhead", "gc"]))
        if kind == "op":
            events.append(make_op(begin, begin + length, name=draw(st.sampled_from(names)), thread=thread))
        elif kind == "sync":
            events.append(make_call(begin, begin + length, name="cudaStreamSynchronize", thread=thread))
        elif kind == "overhead":
            events.append(make_event("overhead", begin, begin + length, name="Buffer Flush", thread=0))
        else:
            events.append(make_event("python_function", begin, begin + length, name="Python GC", thread=thread))
    return events


@st.composite
def random_steps(draw: st.DrawFn) -> list[Json]:
    """Steps one after the other on one thread, with pauses or without; the GPU may lag behind them."""
    steps, at = [], draw(st.integers(0, 40))
    for number in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 60))
        steps.append(make_span(at * TICK, (at + length) * TICK, name=f"tracekit.step#{number}"))
        at += length + draw(st.integers(0, 20))
    return steps


@st.composite
def random_spans(draw: st.DrawFn) -> list[Json]:
    """Steps anywhere on two threads: beside each other, over each other, in each other."""
    spans = []
    for number in range(draw(st.integers(1, 4))):
        begin, length = draw(moments) * TICK, draw(st.integers(1, 60)) * TICK
        spans.append(make_span(begin, begin + length, name=f"tracekit.step#{number}", thread=draw(threads)))
    return spans


def check(found: Analysis, events: list[Json], steps: list[Json]) -> None:
    reference = Reference(events, steps)
    expected = reference.expect()
    us = {count: count * TICK for count in range(2000)}
    assert {each.id: each.busy_us for each in found.devices} == {d: us[n] for d, n in expected.busy.items()}
    assert {each.id: each.idle_us for each in found.devices} == {d: us[n] for d, n in expected.idle.items()}
    assert found.idle.gap_count == expected.gaps
    assert all(sum(gap.causes.values()) == pytest.approx(gap.duration_us) for gap in found.idle.largest)
    for device, use in zip(found.idle.by_device, found.devices, strict=True):
        assert sum(device.causes.values()) == pytest.approx(use.idle_us)
    for i, (divided, measured) in enumerate(zip(found.idle.by_step, found.steps, strict=True)):
        assert divided.index == measured.index
        assert divided.causes == {cause: us[n] for cause, n in expected.step_causes[i].items()}
    assert {each.cause: each.us for each in found.idle.causes} == {c: us[n] for c, n in expected.causes.items()}
    assert found.kernels.count == expected.kernels.total()
    assert found.launches.count == len(set().union(*expected.launches.values()))
    assert found.copies.memcpy_count == expected.copies["gpu_memcpy"]
    assert found.copies.memset_count == expected.copies["gpu_memset"]
    assert {each.name: each.count for each in found.kernels.by_name} == expected.families
    assert {each.cause: each.gaps for each in found.idle.causes} == expected.gaps_of
    for i, (span, step) in enumerate(zip(reference.steps, found.steps, strict=True) if steps else ()):
        assert step.index == int(span["name"].split("#")[1])
        assert (step.kernels, step.launches) == (expected.kernels[i], len(expected.launches.get(i, ())))
        assert step.wall_us == us[expected.step_walls[i]]
        assert (step.busy_us, step.idle_us) == (us[expected.step_busy[i]], us[expected.step_idle[i]])


@fuzzed(12)
@given(random_events())
def test_a_whole_recording(tmp_path_factory: pytest.TempPathFactory, events: list[Json]) -> None:
    check(analyze(make_trace(tmp_path_factory.getbasetemp(), events)), events, [])


@fuzzed(16)
@given(random_events(), random_steps() | random_spans())
def test_steps(tmp_path_factory: pytest.TempPathFactory, events: list[Json], steps: list[Json]) -> None:
    # One kernel that surely belongs, so that the window is never empty.
    first = min(steps, key=lambda each: (each["ts"], -each["dur"]))
    sure = [make_call(first["ts"], first["ts"] + TICK, correlation=99, thread=first["tid"])]
    sure += [make_kernel(first["ts"] + 1, first["ts"] + 2, correlation=99)]
    every = [*events, *sure, *steps]
    check(analyze(make_trace(tmp_path_factory.getbasetemp(), every)), every, steps)
