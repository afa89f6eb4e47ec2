"""How often did the host start work on the GPU?"""

from __future__ import annotations

import polars as pl

from tracekit.analysis.window import Scope
from tracekit.model.analysis import LaunchSummary

#: cudaGraphLaunch, cuGraphLaunch, hipGraphLaunch, with CUDA's _ptsz and _v variants.
GRAPH_LAUNCH = "GraphLaunch"


def count_launches(scope: Scope) -> LaunchSummary:
    """Launches are calls that at least one kernel of the window names by its correlation id, whatever their name."""
    linked = kernels_with_launch(scope)
    graphs = linked.filter(pl.col("launched_by").str.contains(GRAPH_LAUNCH, literal=True))
    return LaunchSummary(
        count=linked["call"].drop_nulls().n_unique(),
        graph_launches=graphs["call"].n_unique(),
        kernels_in_graphs=graphs.height,
        unlinked_kernels=linked["call"].null_count(),
    )


def kernels_with_launch(scope: Scope) -> pl.DataFrame:
    """The window's kernels with the name of the call that launched them (`launched_by`, None where not recorded)."""
    names = scope.calls.select("call", launched_by="name")
    return scope.activities.filter(pl.col("kind") == "kernel").join(names, on="call", how="left", maintain_order="left")
