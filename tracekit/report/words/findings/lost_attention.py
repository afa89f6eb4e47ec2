"""A fused attention kernel was lost."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import duration
from tracekit.report.words.findings.attention import PRICE

#: The reason known; `comparison/layers.py` tells what it was measured on.
WHY = "A mask that only the compiled model makes can do this: fused kernels do not take every mask."


def title(_: dict[str, Any]) -> str:
    return "The fused attention kernel is lost"


def evidence(facts: dict[str, Any]) -> str:
    more_us = facts["products_more_us"]
    products = f", where matrix products take {duration(more_us)} more" if more_us > 0 else ""
    types = " The products are of float32." if facts["in_float32"] else ""
    return (
        f"Attention kernels took {duration(facts['attention_before_us'])} in {facts['a']} and take "
        f"{duration(facts['attention_after_us'])} in {facts['b']}{products}: attention is likely computed as matrix "
        f"products and a softmax.{types} {WHY} {PRICE}"
    )
