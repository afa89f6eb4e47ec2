"""How often did the host start work on the GPU?"""

from __future__ import annotations

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
