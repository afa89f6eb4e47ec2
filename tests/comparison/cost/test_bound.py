"""What holds a form back, by the rules of docs/bounds.md."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.sides import make_analysis, make_cpu_analysis, make_form, make_side

from tracekit.comparison.cost.bound import find_bound
from tracekit.model.analysis import CommunicationUse, DeviceQueue, SyncTime
from tracekit.model.comparison import Bound, BoundIfSlowed, Side
from tracekit.model.idle_estimate import Between, IdleEstimate
from tracekit.model.sequence import Activity, Operator, Sequence
from tracekit.statements.health import PythonStacksRecorded

BF16 = ("c10::BFloat16",) * 2
LARGE = Operator("aten::mm", ((4096, 4096), (4096, 4096)), BF16)
SMALL = Operator("aten::mm", ((1, 4096), (4096, 4096)), BF16)
TINY = Operator("aten::add", ((8, 8), (8, 8)), BF16)


def side_of(
    *,
    busy_us: float,
    idle_us: float,
    wall_us: float | None,
    causes: dict[str, float] | None = None,
    behind_syncs_us: float = 0.0,
    kernel: tuple[str, str] = ("gemm_128x64", "gemm"),
    **options: Any,
) -> Side:
    """One step. `causes` are shares of the recorded idle time."""
    name, family = kernel
    analysis = make_analysis(
        {name: (family, 10, busy_us)}, steps=1, idle_us=idle_us, causes=causes or {"op_dispatch": 1.0}, **options
    )
    syncs = (SyncTime("cudaStreamSynchronize", 1, behind_syncs_us, None, 1),) if behind_syncs_us else ()
    analysis = replace(analysis, idle=replace(analysis.idle, syncs=syncs))
    return make_side("eager", analysis, make_form("eager", (wall_us,) * 10) if wall_us else None)


def run_of(operator: Operator | None, *, name: str = "nvjet", family: str = "gemm", us: float = 100.0) -> Sequence:
    return Sequence((Activity(name, family, us, operator),), 1.0, "own")


def bound_of(side: Side, sequence: Sequence | None = None) -> Bound:
    bound = find_bound(replace(side, sequence=sequence))
    # The parts divide the call, or the window where no call was timed.
    whole = side.wall_us if bound.basis == "unprofiled" else side.span_us
    assert sum(bound.parts_us.values()) == pytest.approx(whole)
    assert min(bound.parts_us.values()) >= 0
    return bound


def test_communication_is_no_work_of_unknown_limit() -> None:
    use = CommunicationUse(10, 800.0, 200.0, 600.0, 0, 2)
    side = side_of(busy_us=800, idle_us=200, wall_us=1000, kernel=("layer_norm", "normalization"))
    side = replace(side, analysis=replace(side.analysis, communication=use))
    bound = bound_of(side)
    assert bound.kind == "communication-bound"
    assert (bound.parts_us["communication"], bound.parts_us["memory"], bound.parts_us["unknown"]) == (600, 200, 0)
    alone = Sequence((Activity("ncclDevKernel_AllReduce", "communication", 800.0, None),), 1.0, "own")
    use = replace(use, compute_us=0.0, exposed_us=800.0)
    bound = bound_of(replace(side, analysis=replace(side.analysis, communication=use)), alone)
    assert (bound.kind, bound.unknown_because) == ("communication-bound", None)


NEITHER = Operator("aten::mm", ((8, 8), (8, 8)), BF16)
CONVOLUTION = Operator(
    "aten::cudnn_convolution",
    ((8, 512, 64, 64), (512, 512, 3, 3), (), (), (), ()),
    (*BF16, *("ScalarList",) * 4),
    ("", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"),
)


@pytest.mark.parametrize(
    ("busy_us", "idle_us", "more", "kind", "parts"),
    [
        (300, 1200, {}, "launch-bound", {"launch": 700, "compute": 300}),
        # The trace shows 60 % idle, the unprofiled call has 9 %.
        (1000, 1500, {"wall_us": 1100}, "compute-bound", {}),
        (300, 700, {"behind_syncs_us": 600}, "sync-bound", {"sync": 600}),
        # A synchronising call that exposed little.
        (300, 700, {"behind_syncs_us": 60, "causes": {"sync_wait": 0.05, "op_dispatch": 0.95}}, "launch-bound", {}),
        # What synchronising calls exposed is no more than the host's idle time.
        (
            *(300, 700, {"behind_syncs_us": 900, "causes": {"op_dispatch": 0.5, "device": 0.5}}, "mixed"),
            {"sync": 350, "launch": 0, "device": 350},
        ),
        # Two parts of about the same size; latency between launched work; compiling in the window.
        (500, 520, {}, "mixed", {}),
        (300, 700, {"causes": {"device": 1.0}}, "mixed", {"device": 700}),
        (100, 900, {"causes": {"compile": 0.9, "python": 0.1}}, "mixed", {"compile": 810}),
        # Recording lengthens host time, not the device's, and the profiler's own is no part of a call.
        (
            *(300, 1000, {"wall_us": 800, "causes": {"op_dispatch": 0.8, "device": 0.2}}, "mixed"),
            {"device": 200, "launch": 300},
        ),
        (300, 1000, {"wall_us": 800, "causes": {"op_dispatch": 0.5, "profiler": 0.5}}, "launch-bound", {"launch": 500}),
        # Idle time that no recording shows is no host's.
        (300, 100, {}, "mixed", {"launch": 100, "unseen": 600}),
    ],
)
def test_the_largest_part_of_a_call_decides_if_it_is_far_enough_ahead(busy_us, idle_us, more, kind, parts) -> None:
    bound = bound_of(side_of(**{"busy_us": busy_us, "idle_us": idle_us, "wall_us": 1000, **more}), run_of(LARGE))
    assert (bound.kind, bound.basis, bound.unknown_because, bound.if_slowed) == (kind, "unprofiled", None, None)
    assert {part: bound.parts_us[part] for part in parts} == pytest.approx(parts)


@pytest.mark.parametrize(
    ("sequence", "kind"),
    [
        (run_of(LARGE), "compute-bound"),
        (run_of(SMALL), "memory-bound"),
        # Too small to fill the GPU; the same of no known size.
        (run_of(TINY, name="vectorized", family="pointwise", us=2.0), "latency-bound"),
        (run_of(None, name="vectorized", family="pointwise", us=2.0), "memory-bound"),
        # Far from both limits.
        (run_of(NEITHER), "mixed"),
        (run_of(CONVOLUTION, name="sm90_xmma_fprop", family="convolution"), "compute-bound"),
        (run_of(None, name="vectorized", family="pointwise"), "memory-bound"),
        (run_of(None, name="Memcpy HtoD", family="memcpy"), "copy-bound"),
        # Sizes were not recorded: nobody can say.
        (run_of(None), None),
        (None, None),
    ],
)
def test_a_gpu_that_hardly_waits_is_bound_by_what_it_does(sequence: Sequence | None, kind: str | None) -> None:
    assert bound_of(side_of(busy_us=950, idle_us=60, wall_us=1000), sequence).kind == kind


STACKS = [PythonStacksRecorded(1, host_slower_up_to=4)]


@pytest.mark.parametrize(
    ("busy_us", "idle_us", "health", "kind", "slowed"),
    [
        # 95 % idle: even if recording slowed the call 3.35 times, 83 %.
        (50, 950, [], "launch-bound", (3.35, "launch-bound", "launch-bound")),
        # 80 % idle: 33 % then.
        (200, 800, [], "mixed", (3.35, "launch-bound", "compute-bound")),
        # With Python stacks a trace decides less.
        (131, 869, [], "launch-bound", (3.35, "launch-bound", "launch-bound")),
        (131, 869, STACKS, "mixed", (4.25, "launch-bound", "compute-bound")),
    ],
)
def test_a_trace_alone_decides_only_what_distortion_could_not_have_made(busy_us, idle_us, health, kind, slowed) -> None:
    side = side_of(busy_us=busy_us, idle_us=idle_us, wall_us=None, health=health)
    found = find_bound(replace(side, sequence=run_of(LARGE)))
    assert (found.kind, found.basis, found.if_slowed) == (kind, "trace", BoundIfSlowed(*slowed))


def test_what_follows_a_wait_in_an_unprofiled_call_is_the_synchronising_calls() -> None:
    side = side_of(busy_us=300, idle_us=1400, wall_us=1000, behind_syncs_us=1300)
    causes = {"sync_wait": 20.0, "op_dispatch": 500.0, "python": 150.0, "device": 30.0}
    estimate = IdleEstimate({cause: Between(us, us, us) for cause, us in causes.items()}, {"python": 150.0})
    bound = bound_of(replace(side, idle_estimate=estimate))
    assert (bound.parts_us["sync"], bound.parts_us["launch"], bound.parts_us["device"]) == (170, 500, 30)
    assert (bound.kind, bound_of(side).kind) == ("launch-bound", "sync-bound")
    # Ten more than the GPU was idle.
    over = replace(estimate, causes={**estimate.causes, "op_dispatch": Between(510.0, 400.0, 600.0)})
    assert bound_of(replace(side, idle_estimate=over)).parts_us["launch"] == pytest.approx(500)


def test_the_queue_is_told_beside_a_launch_bound_form() -> None:
    side = side_of(busy_us=300, idle_us=1200, wall_us=1000)
    queue = DeviceQueue(0, 200, 196, 0, 0, None, None, 1000, 200, 300, 0, 0.1, 1, ())
    bound = bound_of(replace(side, analysis=replace(side.analysis, queue=(queue,))), run_of(LARGE))
    assert bound.starved_share == pytest.approx(0.98)


@pytest.mark.parametrize(
    ("sequence", "gpu", "why"),
    [
        (None, "NVIDIA H200", "no_sizes"),
        (run_of(None), "NVIDIA H200", "no_sizes"),
        (run_of(Operator("aten::mm", (), ())), "NVIDIA H200", "no_sizes"),
        (run_of(LARGE), "Imagined Accelerator", "unknown_device"),
        (run_of(Operator("aten::mm", ((4, 8), (9, 2)), BF16)), "NVIDIA H200", "sizes_do_not_tell"),
    ],
)
def test_what_is_not_known_of_products_is_summed_and_the_reason_said(sequence, gpu, why) -> None:
    # Also where it is neither the first part nor the second.
    side = side_of(busy_us=100, idle_us=900, wall_us=1000, causes={"op_dispatch": 0.8, "device": 0.2}, gpu_name=gpu)
    side = replace(side, environment=replace(side.environment, gpu=gpu)) if side.environment else side
    bound = bound_of(side, sequence)
    assert bound.kind == "launch-bound"
    assert bound.parts_us["unknown"] == pytest.approx(100)
    assert bound.unknown_because == why


def test_a_cuda_graph_s_products_need_the_operators_of_another_trace_and_a_cpu_run_has_no_bound() -> None:
    bound = find_bound(replace(side_of(busy_us=950, idle_us=60, wall_us=None, graph_launches=1), sequence=run_of(None)))
    assert (bound.kind, bound.unknown_because) == (None, "no_sizes_in_graphs")
    assert find_bound(make_side("eager", make_cpu_analysis(), make_form())) is None
