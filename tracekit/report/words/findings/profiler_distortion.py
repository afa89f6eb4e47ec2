"""Recording slowed a side down so much that its trace misleads."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import times

TAKEN_ON_GPU = (
    "Wall times here are unprofiled ones; the recordings give GPU busy time, which hardly changes, and how idle time "
    "divides into causes."
)
TAKEN_ON_CPU = "Wall times here are unprofiled ones; operator times are as recorded, and longer than the true ones."


def title(_: dict[str, Any]) -> str:
    return "Recording slowed the calls it recorded"


def evidence(facts: dict[str, Any]) -> str:
    slowed = "; ".join(
        f"{each['side']}: a recorded step took {times(each['slowdown'])} as long as an unprofiled call"
        for each in facts["slowed"]
    )
    return f"{slowed}. {TAKEN_ON_GPU if facts['on_gpu'] else TAKEN_ON_CPU}"
