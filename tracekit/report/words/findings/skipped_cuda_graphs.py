"""CUDA graphs were asked for and not made."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import percent


def title(facts: dict[str, Any]) -> str:
    return f"CUDA graphs were asked for and {'partly ' if facts['graphed_share'] else ''}skipped"


def evidence(facts: dict[str, Any]) -> str:
    reasons = "; ".join(f"{each['reason'] or 'reason not told'} ({each['times']} times)" for each in facts["skips"])
    why = f"Torch skipped CUDA graphs: {reasons}." if reasons else "Torch did not say why."
    share = facts["graphed_share"]
    return why + (f" {percent(share, 0)} of the kernels were started by CUDA graphs." if share is not None else "")
