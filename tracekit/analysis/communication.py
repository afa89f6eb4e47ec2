"""How much of the GPU's busy time is communication, and how much of that has no other work beside it?"""

import polars as pl

from tracekit import interval
from tracekit.analysis.kernels import family_of
from tracekit.analysis.window import Scope, columns
from tracekit.model.analysis import CommunicationUse, GpuUse
from tracekit.model.trace import Trace


def measure_communication(trace: Trace, scope: Scope, gpu: GpuUse) -> CommunicationUse | None:
    """None where no communication kernel belongs to the window."""
    is_one = communicates(trace.activities)
    own = scope.activities.filter(communicates(scope.activities))
    if not own.height:
        return None
    compute_ns = 0
    for device, window in scope.windows.items():
        other = trace.activities.filter((pl.col("device") == device) & ~is_one)
        compute_ns += int(interval.covered_within(interval.union(*columns(other, "start_ns", "end_ns")), window).sum())
    stated = trace.distributed
    return CommunicationUse(
        kernels=own.height,
        total_us=int((own["end_ns"] - own["start_ns"]).sum()) / 1e3,
        compute_us=compute_ns / 1e3,
        exposed_us=gpu.busy_us - compute_ns / 1e3,
        rank=stated.rank if stated else None,
        world_size=stated.world_size if stated else None,
    )


def communicates(activities: pl.DataFrame) -> pl.Expr:
    """Which of the activities are communication kernels."""
    names = activities.filter(pl.col("kind") == "kernel")["name"].unique()
    found = [name for name in names if family_of(name) == "communication"]
    return (pl.col("kind") == "kernel") & pl.col("name").is_in(found)
