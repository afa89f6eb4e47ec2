"""A part of the model is left out of the compiled scope that has much to fuse."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import duration, percent


def title(facts: dict[str, Any]) -> str:
    component = facts["component"]
    what = f"Part of {component}" if facts["partly_compiled"] else component
    return f"{what} is not compiled, and has kernels to fuse"


def evidence(facts: dict[str, Any]) -> str:
    return (
        f"Element-wise work, norms, reductions and copies there take {duration(facts['fusible_us'])} of GPU time a "
        f"call, {percent(facts['fusible_us'] / facts['busy_us'], 0)}. What was fused in the compiled part kept "
        f"{percent(facts['kept_share'], 0)} of its time."
    )
