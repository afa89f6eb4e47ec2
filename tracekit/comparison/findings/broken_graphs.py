"""Is compiled code broken up by lines that Dynamo cannot trace?"""

from __future__ import annotations

from collections.abc import Sequence

from tracekit.comparison.commands import profile_command
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.model.compilation import GraphBreak
from tracekit.numbers import duration

#: So many breaks, or this share of the call spent between compiled graphs, are worth an action.
MANY = 3
COSTLY = 0.02
#: So many are named.
NAMED = 3
#: Settings of Dynamo that a hint of torch's may name, and the variables that set them for one command.
SWITCHES = {
    "capture_scalar_outputs": "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1",
    "capture_dynamic_output_shape_ops": "TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS=1",
}


def find_broken_graphs(comparison: Comparison) -> Finding | None:
    """Found when B's graphs break. The saving is the host time outside of compiled code in the frames that broke, as
    recorded, but no more than the GPU waits for anything: what mending all of them can save at most."""
    side = comparison.b
    breaks = side.diagnostics.breaks if side.diagnostics else ()
    if not breaks:
        return None
    costs = [each.per_step_us for each in breaks if each.per_step_us is not None]
    cost = sum(costs) if costs else None
    costly = cost is not None and side.wall_us is not None and cost > COSTLY * side.wall_us
    longest = sorted(breaks, key=lambda each: -(each.per_step_us or 0))[:NAMED]
    more = f"; and {len(breaks) - NAMED} more" if len(breaks) > NAMED else ""
    hints = dict.fromkeys(each.hint for each in longest if each.hint)
    hint = "".join(f" {each.rstrip('.')}." for each in hints)
    return Finding(
        code="broken_graphs",
        severity="warning" if costly or len(breaks) >= MANY else "info",
        title=f"{len(breaks)} graph break{'s' if len(breaks) > 1 else ''} in {side.label}",
        evidence=f"{'; '.join(map(_told, longest))}{more}.{hint}",
        saving_us=_saving(side, cost),
        advice=_advice(side, breaks) if side.settings else None,
    )


def _advice(side: Side, breaks: Sequence[GraphBreak]) -> str:
    """With what torch's hints switch on; where they name nothing of the kind, `--fullgraph`, which ends with an error
    at the first break that is left."""
    if side.settings is None:
        raise AssertionError("a command is made of settings")
    hints = " ".join(each.hint or "" for each in breaks)
    switches = [switch for name, switch in SWITCHES.items() if name in hints]
    if switches:
        return " ".join([*switches, profile_command(side.settings)])
    return profile_command(side.settings, more=("--fullgraph",))


def _saving(side: Side, cost: float | None) -> float | None:
    idle_us = side.unprofiled_idle_us if side.unprofiled_idle_us is not None else side.recorded_idle_us
    bounds = [us for us in (cost, idle_us, side.wall_us) if us is not None]
    return min(bounds) if cost is not None else None


def _told(each: GraphBreak) -> str:
    cost = f" ({duration(each.per_step_us)} a step outside of compiled code)" if each.per_step_us else ""
    return f"{each.where or 'a line not told'}: {each.reason}{cost}"
