"""The GPU runs dry because the program waits for it in the middle of a call."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import count, duration, percent


def title(facts: dict[str, Any]) -> str:
    return f"{facts['side']} waits for the GPU in the middle of a call"


def evidence(facts: dict[str, Any]) -> str:
    idle_us, lines = facts["idle_us"], facts["made_by"]
    made_by = f" Made by {', '.join(lines)}." if lines else " Where from was not recorded."
    return (
        f"{count(facts['times'])} times a call the GPU runs dry because the host waits in {', '.join(facts['calls'])}, "
        f"and is then idle for {duration(idle_us)} in all, {percent(idle_us / facts['call_us'], 0)} of the call."
        f"{made_by}"
    )
