"""Does the GPU wait for the host to launch work?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.numbers import duration, percent

#: An idle share above this is launch-bound, if the host's own work is the leading cause.
IDLE_SHARE = 0.4
HOST_CAUSES = ("op_dispatch", "launch_call", "guards", "python")


def find_launch_bound(comparison: Comparison) -> Finding | None:
    """Found when B, compiled without CUDA graphs, leaves the GPU idle over 40 % of the call, mostly for the host.

    The saving is all the idle time that the host's work explains, as recorded but no more than there is without the
    profiler: what CUDA graphs can save at most.
    """
    side = comparison.b
    wall, idle = side.wall_us, side.unprofiled_idle_us
    if wall is None or idle is None or idle <= IDLE_SHARE * wall or _uses_graphs(side) or not _is_compiled(side):
        return None
    causes = side.idle_by_cause()
    host, recorded = sum(causes.get(cause, 0.0) for cause in HOST_CAUSES), sum(causes.values())
    if host <= recorded / 2:
        return None
    return Finding(
        code="launch_bound",
        severity="warning",
        title="The GPU waits for the host",
        evidence=(
            f"{percent(idle / wall, 0)} of the unprofiled call ({duration(idle)} of {duration(wall)}) the GPU is idle; "
            f"dispatch, launch calls, guards and Python explain {percent(host / recorded, 0)} of the recorded idle "
            "time. No CUDA graph was launched."
        ),
        saving_us=min(host, idle),
        advice=profile_command(side.settings, mode="reduce-overhead") if side.settings else None,
    )


def _uses_graphs(side: Side) -> bool:
    return side.analysis.launches is not None and side.analysis.launches.graph_launches > 0


def _is_compiled(side: Side) -> bool:
    return side.form is not None and side.form.name == "compiled"
