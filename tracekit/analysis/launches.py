"""How often did the host start work on the GPU?"""

from __future__ import annotations

import polars as pl

from tracekit.analysis.window import Scope
from tracekit.model.analysis import LaunchSummary

#: cudaGraphLaunch, cuGraphLaunch, hipGraphLaunch, with CUDA's _ptsz and _v variants.
GRAPH_LAUNCH = "GraphLaunch"


def count_launches(scope: Scope) -> LaunchSummary:
    """Launches are calls that at least one kernel of the window names by its correlation id, whatever their name."""
    kernels = scope.activities.filter(scope.activities["kind"] == "kernel")["call"]
    graph_calls = scope.calls.filter(scope.calls["name"].str.contains(GRAPH_LAUNCH, literal=True))["call"]
    in_graphs = kernels.filter(kernels.is_in(graph_calls.implode()))
    return LaunchSummary(
        count=kernels.drop_nulls().n_unique(),
        graph_launches=in_graphs.n_unique(),
        kernels_in_graphs=in_graphs.len(),
        unlinked_kernels=kernels.null_count(),
    )


def in_launch_order(scope: Scope) -> pl.DataFrame:
    """The window's activities, step by step, in the order of the calls that launched them, with `launched_by`,
    `launched_on` (a thread) and `launched_ns` of that call, null where it was not recorded.

    What has no recorded launch stands where it started; the activities of one call (a CUDA graph's) are in the order of
    their start.
    """
    calls = scope.calls.select("call", launched_by="name", launched_on="thread", launched_ns="start_ns")
    work = scope.activities.join(calls, on="call", how="left", maintain_order="left")
    return work.sort("step", pl.coalesce("launched_ns", "start_ns"), "start_ns", maintain_order=True)
