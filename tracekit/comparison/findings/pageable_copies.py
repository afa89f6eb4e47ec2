"""Does the host stand still for copies from or to pageable memory?"""

from __future__ import annotations

import math

from tracekit.comparison.gap_places import gaps_behind
from tracekit.comparison.savings import exposing, idle_saving
from tracekit.model.action import Action
from tracekit.model.analysis import KernelTime
from tracekit.model.comparison import Comparison, Finding, Side

#: Less than this share of the call is not worth a line.
WORTH_SAYING = 0.02


def find_pageable_copies(comparison: Comparison) -> Finding | None:
    """Found when idle time behind copies that held the host is over 2 % of B's call, and pageable memory was copied.
    The saving is that idle time: a copy from pinned memory lets the host go on. Where all of them are read back to the
    host, pinning does not help, and other advice is given."""
    side = comparison.b
    copies, call_us = _pageable(side), side.wall_us or side.span_us
    syncs = [sync for sync in exposing(side) if "memcpy" in sync.call.lower()]
    lost_us = idle_saving(side, math.fsum(sync.idle_after_us for sync in syncs) / side.steps)
    if not copies or not call_us or lost_us < WORTH_SAYING * call_us:
        return None
    read_back = all("dtoh" in copy.name.lower() for copy in copies)
    return Finding(
        code="pageable_copies",
        severity="warning",
        facts={
            "side": side.label,
            "copies": sum(copy.count for copy in copies) / side.steps,
            "copy_us": math.fsum(copy.total_us for copy in copies) / side.steps,
            "idle_us": lost_us,
            "call_us": call_us,
            "made_by": _made_by(side),
        },
        saving_us=lost_us,
        action=Action("keep_on_gpu" if read_back else "pin_memory"),
        places=gaps_behind(side, {sync.call for sync in syncs}),
    )


def _pageable(side: Side) -> list[KernelTime]:
    copies = side.analysis.copies
    return [each for each in copies.by_name if "pageable" in each.name.lower()] if copies else []


def _made_by(side: Side) -> list[str]:
    """Which operators and lines copy, as far as they were recorded."""
    known = side.host.idle.syncs if side.host.idle else ()
    copying = (sync for sync in known if "memcpy" in sync.call.lower() and sync.drained)
    return list(dict.fromkeys(sync.where for sync in copying if sync.where))
