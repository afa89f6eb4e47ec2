"""The host stands still for copies from or to pageable memory."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import count, duration, percent


def title(facts: dict[str, Any]) -> str:
    return f"Copies of pageable memory hold {facts['side']} up"


def evidence(facts: dict[str, Any]) -> str:
    made_by = f" Made by {'; '.join(facts['made_by'])}." if facts["made_by"] else ""
    return (
        f"{count(facts['copies'])} copies from or to pageable memory take {duration(facts['copy_us'])} a call; the "
        f"host waits for them, and the GPU is idle for {duration(facts['idle_us'])} behind them, "
        f"{percent(facts['idle_us'] / facts['call_us'], 0)} of the call.{made_by}"
    )
