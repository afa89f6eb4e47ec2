"""The kernels of the other side take longer."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import count, duration, percent


def title(facts: dict[str, Any]) -> str:
    grew = percent(facts["b_busy_us"] / facts["a_busy_us"] - 1, 0)
    return f"The kernels of {facts['side']} take longer: GPU busy time grew by {grew}"


def evidence(facts: dict[str, Any]) -> str:
    return (
        f"GPU busy time went from {duration(facts['a_busy_us'])} to {duration(facts['b_busy_us'])}, "
        f"kernels from {count(facts['a_kernels'])} to {count(facts['b_kernels'])}."
    )
