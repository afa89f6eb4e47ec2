"""The other side needs fewer kernels."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import count, duration


def title(facts: dict[str, Any]) -> str:
    return f"{count(facts['a_kernels'] - facts['b_kernels'])} fewer kernels"


def evidence(facts: dict[str, Any]) -> str:
    return (
        f"{count(facts['a_kernels'])} kernels became {count(facts['b_kernels'])}; GPU busy time went from "
        f"{duration(facts['a_busy_us'])} to {duration(facts['b_busy_us'])}."
    )
