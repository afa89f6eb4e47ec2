"""Products run in float32 in a model of 16 bits."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import count, duration, percent


def title(facts: dict[str, Any]) -> str:
    return f"{facts['side']} multiplies in float32"


def evidence(facts: dict[str, Any]) -> str:
    return (
        f"{count(facts['products'])} products a call have float32 inputs ({', '.join(facts['operators'])}) and take "
        f"{duration(facts['products_us'])}, {percent(facts['products_us'] / facts['busy_us'], 0)} of GPU time, where "
        f"the model is of 16 bits. {_why(facts)}"
    )


def _why(facts: dict[str, Any]) -> str:
    if facts["read_before"] < facts["read"]:
        return f"Compiling brought them: {facts['before']} has {facts['read_before']} of them in all that was read."
    if facts["before"] is None:
        return "Look for .float() and for buffers of float32."
    return f"{facts['before']} has them too: look for .float() and for buffers of float32."
