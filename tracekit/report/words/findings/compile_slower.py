"""The compiled form is slower than the eager one."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import duration


def title(_: dict[str, Any]) -> str:
    return "Compiling made this slower"


def evidence(facts: dict[str, Any]) -> str:
    return (
        f"A call takes {duration(facts['b_wall_us'])} compiled and {duration(facts['a_wall_us'])} eager, "
        "unprofiled medians. Leave torch.compile off for this model, batch and mode."
    )
