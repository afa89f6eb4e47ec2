"""Does the GPU run dry because the program waits for it in the middle of a call?"""

from __future__ import annotations

import math

from tracekit.comparison.gap_places import gaps_behind
from tracekit.comparison.matching.plain_names import plain_name
from tracekit.comparison.savings import exposing, idle_saving
from tracekit.model.action import Action
from tracekit.model.analysis import SyncTime
from tracekit.model.comparison import Comparison, Finding
from tracekit.model.provenance import EagerOps

#: Less than this share of the call is not worth a line.
WORTH_SAYING = 0.02
#: So many lines of the program are named.
MOST_LINES = 3


def find_synchronising_calls(comparison: Comparison) -> Finding | None:
    """Found when idle time that synchronising calls exposed is over 2 % of B's call; copies that block have a finding
    of their own. The saving is that idle time without what recording added to it."""
    side = comparison.b
    syncs = [sync for sync in exposing(side) if "memcpy" not in sync.call.lower()]
    lost_us = idle_saving(side, math.fsum(sync.idle_after_us for sync in syncs) / side.steps)
    call_us = side.wall_us or side.span_us
    # In a whole recording the wait between two calls cannot be told from one in the middle of a call.
    if not call_us or side.analysis.window.kind == "whole" or lost_us < WORTH_SAYING * call_us:
        return None
    return Finding(
        code="synchronising_calls",
        severity="warning",
        facts={
            "side": side.label,
            "times": sum(sync.drained for sync in syncs) / side.steps,
            "calls": list(dict.fromkeys(sync.call for sync in syncs)),
            "idle_us": lost_us,
            "call_us": call_us,
            "made_by": _lines(comparison, syncs),
        },
        saving_us=lost_us,
        action=Action("read_after_the_call"),
        places=gaps_behind(side, {sync.call for sync in syncs}),
    )


def _lines(comparison: Comparison, syncs: list[SyncTime]) -> list[str]:
    """The operators that waited, as the richer recording of B tells them, with the lines that call them."""
    side, calls = comparison.b, {sync.call for sync in syncs}
    known = side.host.idle.syncs if side.host.idle else ()
    operators = dict.fromkeys(sync.where for sync in known if sync.call in calls and sync.drained and sync.where)
    eager = comparison.a.provenance
    # Where it is known what operators launched, their lines are told already.
    lines = _lines_of(eager, operators) if isinstance(eager, EagerOps) and not eager.activities else []
    return (lines or list(operators))[:MOST_LINES]


def _lines_of(eager: EagerOps, operators: dict[str, None]) -> list[str]:
    """Copies are left out: only some of them wait, and the operator does not say which."""
    wanted = {plain_name(_operator(each)): _operator(each) for each in operators} if operators else {}
    wanted.pop("copy", None)
    return list(
        dict.fromkeys(
            f"{wanted[plain_name(op.name)]} at {op.line}"
            for op in eager.ops
            if op.line and plain_name(op.name) in wanted and not op.backward
        )
    )


def _operator(place: str) -> str:
    """The operator that `Place.words` begins with."""
    return place.partition(" in ")[0].partition(",")[0]
