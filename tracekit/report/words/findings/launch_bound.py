"""The GPU waits for the host to launch work."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import duration, percent


def title(_: dict[str, Any]) -> str:
    return "The GPU waits for the host"


def evidence(facts: dict[str, Any]) -> str:
    idle_us, wall_us = facts["idle_us"], facts["wall_us"]
    return (
        f"{percent(idle_us / wall_us, 0)} of the unprofiled call ({duration(idle_us)} of {duration(wall_us)}) the GPU "
        f"is idle; dispatch, launch calls, guards and Python explain {percent(facts['host_share'], 0)} of what is "
        "known of it. No CUDA graph was launched."
    )
