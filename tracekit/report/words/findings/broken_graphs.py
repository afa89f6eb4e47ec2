"""Graphs break at lines that Dynamo cannot trace."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import counted, duration

#: What is said of the advice where nothing can be switched on: it saves nothing by itself, and is not tried.
FULLGRAPH = (
    " --fullgraph makes nothing faster: it ends with an error at the first break that is left and names the line, "
    "which is then to be rewritten, or kept out of the model."
)


def title(facts: dict[str, Any]) -> str:
    return f"Graphs break at {counted(facts['lines'], 'line')} in {facts['side']}"


def evidence(facts: dict[str, Any]) -> str:
    left_out = facts["lines"] - len(facts["longest"])
    more = f"; and {left_out} more" if left_out else ""
    hints = "".join(f" {each.rstrip('.')}." for each in facts["hints"])
    number = facts["counted_by_dynamo"]
    # Dynamo's own count, which other parts of a report show: it counts a line again for each function it compiles.
    times = (
        f" Dynamo counted {counted(number, 'break')}, one for each function compiled up to such a line."
        if number
        else ""
    )
    return (
        f"{'; '.join(map(_told, facts['longest']))}{more}.{hints}{times}{'' if facts['can_be_switched'] else FULLGRAPH}"
    )


def _told(each: dict[str, Any]) -> str:
    us = each["per_step_us"]
    cost = f" ({duration(us)} a step outside of compiled code)" if us else ""
    return f"{each['line'] or 'a line not told'}: {each['reason']}{cost}"
