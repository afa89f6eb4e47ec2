"""CUDA graphs took over the launching."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import count, duration_change, percent


def title(facts: dict[str, Any]) -> str:
    return f"CUDA graphs start {percent(facts['graphed_share'], 0)} of the kernels of {facts['side']}"


def evidence(facts: dict[str, Any]) -> str:
    idle_us = facts["idle_change_us"]
    change = f" GPU idle time changed by {duration_change(idle_us)}." if idle_us is not None else ""
    return f"{count(facts['a_launches'])} launches became {count(facts['b_launches'])}.{change}"
