"""Was anything compiled inside the timed calls?"""

from __future__ import annotations

from typing import Any

from tracekit.comparison.commands import profile_command
from tracekit.comparison.judging.compiling_calls import CompilingCost, compilations_while_timed, find_compiling_costs
from tracekit.model.action import Action
from tracekit.model.comparison import Comparison, Finding, Side

#: So many calls are told one by one.
NAMED = 3


def find_recompiled_during_timing(comparison: Comparison) -> Finding | None:
    """Found when a side's timed calls hold compilation, so that its times are not of compiled code alone. Says which
    calls, which checks failed where torch told, and what it cost in all."""
    for side in (comparison.a, comparison.b):
        if count := compilations_while_timed(side):
            costs = find_compiling_costs(side)
            return Finding(
                code="recompiled_during_timing",
                severity="warning",
                facts=_facts(side, costs, count),
                saving_us=None,
                action=_action(side, told=bool(costs)),
            )
    return None


def _facts(side: Side, costs: tuple[CompilingCost, ...], count: int) -> dict[str, Any]:
    extra = [cost.extra_us for cost in costs if cost.extra_us is not None]
    checks = (check for cost in costs for frame in cost.frames for check in frame.because)
    return {
        "side": side.label,
        "compilations": count,
        "calls": len(costs),
        "first": list(map(_call, costs[:NAMED])),
        "cost_us": sum(extra) if extra else None,
        "warmed_up_at": dict((side.diagnostics.warmed_up_at if side.diagnostics else None) or {}),
        "any_size": _any_size(side),
        "failed_for_one": any(check.is_of_one for check in checks),
    }


def _call(cost: CompilingCost) -> dict[str, Any]:
    checks = [check.facts for frame in cost.frames for check in frame.because[:1]]
    return {
        "call": cost.call.call,
        "wall_us": cost.call.wall_us,
        "failed_checks": [check for at, check in enumerate(checks) if check not in checks[:at]],
        "cuda_graphs": cost.call.cuda_graphs,
    }


def _any_size(side: Side) -> bool:
    return side.settings is not None and side.settings.dynamic is True


def _action(side: Side, *, told: bool) -> Action | None:
    if side.settings is None:
        return None
    command = profile_command(side.settings)
    if told and side.diagnostics and side.diagnostics.warmed_up_at:
        return Action("run_again", command)
    if not told or _any_size(side):
        return Action("run_again", f"TORCH_LOGS=recompiles {command}")
    return Action("run_again", profile_command(side.settings, {"dynamic": "True"}))
