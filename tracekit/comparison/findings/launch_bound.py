"""Does the GPU wait for the host to launch work?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.comparison.gap_places import gaps_of_cause
from tracekit.model.action import Action
from tracekit.model.comparison import Comparison, Finding, Side

#: An idle share above this is launch-bound, if the host's own work is the leading cause.
IDLE_SHARE = 0.4
HOST_CAUSES = ("op_dispatch", "launch_call", "guards", "python")
GRAPHS = {"mode": "reduce-overhead"}


def find_launch_bound(comparison: Comparison) -> Finding | None:
    """Found when B, compiled without CUDA graphs, leaves the GPU idle over 40 % of the call, mostly for the host.

    The saving is all idle time of the unprofiled call that the host's work explains: what CUDA graphs can save at most.
    """
    side = comparison.b
    wall, idle = side.wall_us, side.unprofiled_idle_us
    if wall is None or idle is None or idle <= IDLE_SHARE * wall or _uses_graphs(side) or not _is_compiled(side):
        return None
    causes = side.calibrated_idle_by_cause() or {}
    host, known = sum(causes.get(cause, 0.0) for cause in HOST_CAUSES), sum(causes.values())
    if host <= known / 2:
        return None
    return Finding(
        code="launch_bound",
        severity="warning",
        facts={"wall_us": wall, "idle_us": idle, "host_share": host / known},
        saving_us=host,
        action=Action("run_again", profile_command(side.settings, GRAPHS)) if side.settings else None,
        changes=GRAPHS if side.settings else {},
        places=gaps_of_cause(side, HOST_CAUSES),
    )


def _uses_graphs(side: Side) -> bool:
    return side.analysis.launches is not None and side.analysis.launches.graph_launches > 0


def _is_compiled(side: Side) -> bool:
    return side.form is not None and side.form.name == "compiled"
