"""Is compiled code broken up by lines that Dynamo cannot trace?"""

from __future__ import annotations

from tracekit.comparison.commands import run_again
from tracekit.model.comparison import Comparison, Finding

#: So many breaks, or this share of the call spent between compiled graphs, are worth an action.
MANY = 3
COSTLY = 0.02
#: So many are named.
NAMED = 3
#: Settings of Dynamo that a hint of torch's may name, and the variables that set them for one command.
SWITCHES = {
    "capture_scalar_outputs": "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS",
    "capture_dynamic_output_shape_ops": "TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS",
}


def find_broken_graphs(comparison: Comparison) -> Finding | None:
    """Found when B's graphs break. The saving is the host time outside of compiled code in the frames that broke, as
    recorded, but no more than the GPU waits for anything: what mending all of them can save at most."""
    side = comparison.b
    breaks = side.diagnostics.breaks if side.diagnostics else ()
    if not breaks:
        return None
    costs = [each.per_step_us for each in breaks if each.per_step_us is not None]
    cost = sum(costs)
    costly = side.wall_us is not None and cost > COSTLY * side.wall_us
    idle_us = side.unprofiled_idle_us if side.unprofiled_idle_us is not None else side.recorded_idle_us
    longest = sorted(breaks, key=lambda each: -(each.per_step_us or 0))[:NAMED]
    # What torch's hints name can be switched on; for the rest an error says where it happens.
    hints = " ".join(each.hint or "" for each in breaks)
    switches = {variable: "1" for name, variable in SWITCHES.items() if name in hints}
    return Finding(
        code="broken_graphs",
        severity="warning" if costly or len(breaks) >= MANY else "info",
        facts={
            "side": side.label,
            "lines": len(breaks),
            "longest": [
                {"line": each.line, "reason": each.reason, "per_step_us": each.per_step_us} for each in longest
            ],
            "hints": list(dict.fromkeys(each.hint for each in longest if each.hint)),
            "counted_by_dynamo": side.form.compilation.graph_breaks if side.form and side.form.compilation else 0,
            "can_be_switched": bool(switches),
        },
        saving_us=min(us for us in (cost, idle_us, side.wall_us) if us is not None) if costs else None,
        action=run_again(side.settings, more=("--fullgraph",), switches=switches),
        environment=switches if side.settings else {},
    )
