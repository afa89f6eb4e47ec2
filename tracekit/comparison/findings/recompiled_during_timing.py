"""Was anything compiled inside the timed calls?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.comparison.compiling_calls import CompilingCost, compilations_while_timed, find_compiling_costs
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.numbers import counted

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
                title=f"Code of {side.label} was compiled again inside timed calls",
                evidence=_evidence(side, costs, count),
                saving_us=None,
                advice=_advice(side, told=bool(costs)),
            )
    return None


def _evidence(side: Side, costs: tuple[CompilingCost, ...], count: int) -> str:
    if not costs:
        return f"{counted(count, 'compilation')} ran inside timed calls, so the times are not of compiled code alone."
    calls = "; ".join(map(_told, costs[:NAMED])) + (
        f"; and {len(costs) - NAMED} calls more" if len(costs) > NAMED else ""
    )
    extra = [cost.extra_us for cost in costs if cost.extra_us is not None]
    whole = (
        f" This cost {sum(extra) / 1e6:.2f} s over {len(costs)} call{'s' if len(costs) > 1 else ''}." if extra else ""
    )
    return f"{calls[:1].upper()}{calls[1:]}.{whole} {_mend(side, costs)}"


def _told(cost: CompilingCost) -> str:
    """`call 1 compiled again: 12.30 s: ... failed`."""
    took = f": {cost.call.wall_us / 1e6:.2f} s" if cost.call.wall_us is not None else ""
    checks = [check.words for frame in cost.frames for check in frame.because[:1]]
    graphs = (
        f"{cost.call.cuda_graphs} CUDA graphs were recorded" if cost.call.cuda_graphs else "no failed check was told"
    )
    return f"call {cost.call.call} compiled again{took}: {'; '.join(dict.fromkeys(checks)) or graphs}"


def _mend(side: Side, costs: tuple[CompilingCost, ...]) -> str:
    warmed = side.diagnostics.warmed_up_at if side.diagnostics else None
    sizes = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in (warmed or {}).items())
    advice = "warm up with the sizes you run, all of them" if warmed else "warm up with the inputs you run"
    told = (
        f"The warm-up calls had other sizes ({sizes}) than the timed ones: {advice}" if warmed else advice.capitalize()
    )
    if not _any_size(side):
        return f"{told}, or compile for any size with --dynamic."
    if any(check.is_of_one for cost in costs for frame in cost.frames for check in frame.because):
        return f"{told}. --dynamic was on: torch makes code of its own for a size of 1 (or 0) all the same."
    return f"{told}. --dynamic was on, and does not reach these checks."


def _any_size(side: Side) -> bool:
    return side.settings is not None and side.settings.dynamic is True


def _advice(side: Side, *, told: bool) -> str | None:
    if side.settings is None:
        return None
    command = profile_command(side.settings)
    if told and side.diagnostics and side.diagnostics.warmed_up_at:
        return command
    if not told or _any_size(side):
        return f"TORCH_LOGS=recompiles {command}"
    return profile_command(side.settings, {"dynamic": "True"})
