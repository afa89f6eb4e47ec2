"""Is the GPU launch-bound, do CUDA graphs take the launches over, and does it work longer, on fewer kernels, or on too
small ones?"""

import math

from tracekit.comparison.commands import run_again
from tracekit.comparison.waiting import idle_at_most, longest_gaps, most_slowed
from tracekit.model.analysis import OF_LAUNCHING, IdleGap
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.statements.findings.kernels import FewerKernels, MoreGpuTime, SmallKernels
from tracekit.statements.findings.waiting import GraphedLaunches, LaunchBound, SkippedCudaGraphs, SkippedGraphs

#: Less than this is within what recordings of the same work differ by (1 to 4 % on an H200).
LONGER = 1.05
#: Fewer than this share of A's kernels is worth a line.
FEWER = 0.9
#: An idle share above this is launch-bound, if what CUDA graphs take over is the leading cause.
IDLE_SHARE = 0.4
#: The modes that ask for CUDA graphs, and what compiles alike without.
WITHOUT = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}
WITH = {without: graphs for graphs, without in WITHOUT.items()}
#: Graphs that start at least this share of the kernels did what was asked.
ENOUGH = 0.5


def find_more_gpu_time(comparison: Comparison) -> Finding | None:
    """Found when the GPU is busy for a twentieth longer in B: whatever B gained, it did not gain it in kernels."""
    figures = _counts_and_times(comparison)
    if figures is None or not figures.a_busy_us or figures.b_busy_us < LONGER * figures.a_busy_us:
        return None
    kernels, busy_us = (figures.a_kernels, figures.b_kernels), (figures.a_busy_us, figures.b_busy_us)
    # Where it went other findings say, each with its own saving.
    return Finding(MoreGpuTime(comparison.b.label, *kernels, *busy_us, figures.without_communication))


def find_fewer_kernels(comparison: Comparison) -> Finding | None:
    """Found when B runs at least a tenth fewer kernels; says what that did to GPU time, which counts alone do not."""
    figures = _counts_and_times(comparison)
    return Finding(figures) if figures and figures.b_kernels < FEWER * figures.a_kernels else None


def _counts_and_times(comparison: Comparison) -> FewerKernels | None:
    """Of both sides per step, without communication: its kernels wait for other ranks, so that their time is no
    kernel's doing."""
    a, b = comparison.a, comparison.b
    if not (a.analysis.kernels and b.analysis.kernels) or a.compute_us is None or b.compute_us is None:
        return None
    a_apart, b_apart = (side.analysis.communication.kernels if side.analysis.communication else 0 for side in (a, b))
    return FewerKernels(
        a_kernels=(a.analysis.kernels.count - a_apart) / a.steps,
        b_kernels=(b.analysis.kernels.count - b_apart) / b.steps,
        a_busy_us=a.compute_us,
        b_busy_us=b.compute_us,
        without_communication=True if a_apart or b_apart else None,
    )


def find_launch_bound(comparison: Comparison) -> Finding | None:
    """Found when B, compiled without CUDA graphs, leaves the GPU idle over 40 % of the call, mostly for what these do
    away with. The saving is all of that before kernels that compiled code launched."""
    side = comparison.b
    wall, idle, launches = side.wall_us, side.unprofiled_idle_us, side.analysis.launches
    if wall is None or idle is None or idle <= IDLE_SHARE * wall or (launches and launches.graph_launches):
        return None
    causes = side.calibrated_idle_by_cause() or {}
    launching = min(sum(causes.get(cause, 0.0) for cause in OF_LAUNCHING), _captured_us(side))
    if side.form is None or side.form.name != "compiled" or launching <= idle / 2:
        return None
    host = launching + sum(causes.get(cause, 0.0) for cause in ("guards", "python"))
    statement = LaunchBound(wall_us=wall, idle_us=idle, host_share=host / idle, launching_share=launching / idle)
    changes = {"mode": WITH.get(side.settings.mode, "reduce-overhead")} if side.settings else {}

    def is_of_launching(gap: IdleGap) -> bool:
        return sum(gap.causes.get(cause, 0.0) for cause in OF_LAUNCHING) > gap.duration_us / 2

    # In the recording that tells causes apart.
    places = longest_gaps(side.host, is_of_launching)
    return Finding(statement, graphs_saving(side), run_again(side.settings, changes), changes, places)


def graphs_saving(side: Side) -> float | None:
    """What CUDA graphs take off a call at most; None without a GPU."""
    saving_us = idle_at_most(side, OF_LAUNCHING)
    return None if saving_us is None else min(saving_us, _captured_us(side))


def _captured_us(side: Side) -> float:
    """Idle time before what compiled code launches, as recorded with a host as slow as timed calls met: that of the
    rest of the call no graph can capture. Endless where nothing tells what launched it."""
    entering = side.entering
    if entering is None or entering.regions is None or entering.regions.idle_us is None:
        return math.inf
    return most_slowed(side) * entering.regions.idle_us / max(entering.window.steps, 1)


def find_skipped_cuda_graphs(comparison: Comparison) -> Finding | None:
    """Found when B's mode asks for CUDA graphs on a GPU, and torch skipped some or few kernels are in any."""
    side, settings = comparison.b, comparison.b.settings
    if settings is None or settings.device == "cpu" or settings.mode not in WITHOUT:
        return None
    skips = side.diagnostics.cuda_graph_skips if side.diagnostics else ()
    share = side.graphed_share
    if not skips and (share is None or share >= ENOUGH):
        return None
    # Sizes that are any hinder graphs; else the same mode without them has no cost of trying.
    of_size = any("dynamic" in reason or "symbolic" in reason for skip in skips if (reason := skip.reason))
    changes = {"dynamic": "False"} if of_size else {"mode": WITHOUT[settings.mode]}
    statement = SkippedCudaGraphs(share, [SkippedGraphs(skip.reason, skip.count) for skip in skips])
    return Finding(statement, advice=run_again(settings, changes))


def find_graphed_launches(comparison: Comparison) -> Finding | None:
    """Found when B launches kernels by graphs and A does not; says what became of idle time meanwhile."""
    a, b = comparison.a, comparison.b
    if not (a.analysis.launches and b.analysis.launches):
        return None
    if a.analysis.launches.graph_launches or not b.analysis.launches.graph_launches:
        return None
    statement = GraphedLaunches(
        side=b.label,
        graphed_share=b.graphed_share,
        a_launches=a.launches_per_step,
        b_launches=b.launches_per_step,
        idle_change_us=comparison.deltas.idle_us,
    )
    return Finding(statement)


def find_small_kernels(comparison: Comparison) -> Finding | None:
    """Found when B is latency-bound: its kernels are too small to fill the GPU, so neither bytes nor operations limit
    it. What larger ones would save nobody has measured."""
    side, bound = comparison.b, comparison.b.bound
    if bound is None or bound.kind != "latency-bound":
        return None
    return Finding(SmallKernels(side.label, bound.parts_us["small"], sum(bound.parts_us.values())))
