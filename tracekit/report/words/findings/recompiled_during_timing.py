"""Something was compiled inside the timed calls."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import counted


def title(facts: dict[str, Any]) -> str:
    return f"Code of {facts['side']} was compiled again inside timed calls"


def evidence(facts: dict[str, Any]) -> str:
    number = facts["calls"]
    if not number:
        ran = counted(facts["compilations"], "compilation")
        return f"{ran} ran inside timed calls, so the times are not of compiled code alone."
    left_out = number - len(facts["first"])
    calls = "; ".join(map(_told, facts["first"])) + (f"; and {left_out} calls more" if left_out else "")
    cost = facts["cost_us"]
    whole = f" This cost {cost / 1e6:.2f} s over {number} call{'s' if number > 1 else ''}." if cost is not None else ""
    return f"{calls[:1].upper()}{calls[1:]}.{whole} {_mend(facts)}"


def _told(call: dict[str, Any]) -> str:
    """`call 1 compiled again: 12.30 s: ... failed`."""
    took = f": {call['wall_us'] / 1e6:.2f} s" if call["wall_us"] is not None else ""
    graphs = f"{call['cuda_graphs']} CUDA graphs were recorded" if call["cuda_graphs"] else "no failed check was told"
    return f"call {call['call']} compiled again{took}: {'; '.join(call['failed_checks']) or graphs}"


def _mend(facts: dict[str, Any]) -> str:
    warmed = facts["warmed_up_at"]
    sizes = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in warmed.items())
    told = (
        f"The warm-up calls had other sizes ({sizes}) than the timed ones: warm up with the sizes you run, all of them"
        if warmed
        else "Warm up with the inputs you run"
    )
    if not facts["any_size"]:
        return f"{told}, or compile for any size with --dynamic."
    if facts["failed_for_one"]:
        return f"{told}. --dynamic was on: torch makes code of its own for a size of 1 (or 0) all the same."
    return f"{told}. --dynamic was on, and does not reach these checks."
