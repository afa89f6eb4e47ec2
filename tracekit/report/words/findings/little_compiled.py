"""Most of the GPU's work comes from outside of compiled code."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import duration, percent


def title(facts: dict[str, Any]) -> str:
    return f"Compiled code does {percent(facts['compiled_share'], 0)} of the GPU's work in {facts['side']}"


def evidence(facts: dict[str, Any]) -> str:
    busy = f" of {duration(facts['busy_us'])} a step" if facts["busy_us"] is not None else ""
    scope = f" The scope was {facts['scope']}." if facts["scope"] is not None else ""
    outside = percent(1 - facts["compiled_share"], 0)
    return f"{outside} of GPU time{busy} was launched outside of compiled code.{scope}"
