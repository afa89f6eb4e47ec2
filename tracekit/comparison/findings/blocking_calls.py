"""Does the GPU run dry because the host waits in a call: for the GPU, or for copies from or to pageable memory?"""

import math

from tracekit.comparison.waiting import exposing, idle_saving, longest_gaps
from tracekit.model.analysis import SyncTime
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.model.note import distinct
from tracekit.model.provenance import EagerOps
from tracekit.names import plain_name
from tracekit.statements.advice import KeepOnGpu, PinMemory, ReadAfterTheCall
from tracekit.statements.findings.waiting import MadeAt, OperatorCall, PageableCopies, SynchronisingCalls

#: Less than this share of the call is not worth a line.
WORTH_SAYING = 0.02
#: So many lines of the program are named.
MOST_LINES = 3


def find_synchronising_calls(comparison: Comparison) -> Finding | None:
    """Found when idle time that synchronising calls exposed is over 2 % of B's call; copies that block have a finding
    of their own. The saving is that idle time without what recording added to it."""
    side = comparison.b
    syncs = [sync for sync in exposing(side) if not _is_copy(sync)]
    # In a whole recording the wait between two calls cannot be told from one in the middle of a call.
    if (idle := _idle(side, syncs)) is None or side.analysis.window.kind == "whole":
        return None
    idle_us, call_us = idle
    calls = dict.fromkeys(sync.call for sync in syncs)
    waiting = [each for each in _recorded(side) if each.call in calls and each.drained]
    found: list[OperatorCall] = []
    # Where it is known what operators launched, their lines are told already.
    if isinstance(comparison.a.provenance, EagerOps) and not comparison.a.provenance.activities:
        operators = [each.place.operator for each in waiting if each.place and each.place.operator]
        wanted = {plain_name(each): each for each in operators if plain_name(each) != "copy"}
        found += (
            OperatorCall(wanted[plain_name(op.name)], op.line)
            for op in comparison.a.provenance.ops
            if op.line and not op.backward and plain_name(op.name) in wanted
        )
    made_by = distinct(found) or _made_by(waiting)
    statement = SynchronisingCalls(
        side=side.label,
        times=sum(sync.drained for sync in syncs) / side.steps,
        calls=tuple(calls),
        idle_us=idle_us,
        call_us=call_us,
        made_by=made_by[:MOST_LINES],
    )
    # In the recording that distorts least.
    places = longest_gaps(side.analysis, lambda gap: gap.sync in calls)
    return Finding(statement, idle_us, ReadAfterTheCall(), places=places)


def find_pageable_copies(comparison: Comparison) -> Finding | None:
    """Found when idle time behind copies that held the host is over 2 % of B's call, and pageable memory was copied.
    The saving is that idle time: a copy from pinned memory lets the host go on. Where all of them are read back to the
    host, pinning does not help, and other advice is given."""
    side = comparison.b
    every = side.analysis.copies.by_name if side.analysis.copies else ()
    copies = [each for each in every if "pageable" in each.name.lower()]
    syncs = [sync for sync in exposing(side) if _is_copy(sync)]
    if not copies or (idle := _idle(side, syncs)) is None:
        return None
    idle_us, call_us = idle
    read_back = all("dtoh" in copy.name.lower() for copy in copies)
    copying = [each for each in _recorded(side) if _is_copy(each) and each.drained]
    statement = PageableCopies(
        side=side.label,
        copies=sum(copy.count for copy in copies) / side.steps,
        copy_us=math.fsum(copy.total_us for copy in copies) / side.steps,
        idle_us=idle_us,
        call_us=call_us,
        made_by=_made_by(copying),
    )
    calls, names = {sync.call for sync in syncs}, {copy.name for copy in copies}
    places = longest_gaps(side.analysis, lambda gap: gap.sync in calls)
    groups = tuple(
        number for number, group in enumerate(comparison.groups) if any(each.name in names for each in group.b)
    )
    return Finding(statement, idle_us, KeepOnGpu() if read_back else PinMemory(), places=places, groups=groups)


def _is_copy(sync: SyncTime) -> bool:
    return "memcpy" in sync.call.lower()


def _idle(side: Side, syncs: list[SyncTime]) -> tuple[float, float] | None:
    """How much of a call the GPU is idle behind these, and the call; None where that is not worth a line."""
    idle_us = idle_saving(side, math.fsum(sync.idle_after_us for sync in syncs) / side.steps)
    call_us = side.wall_us or side.span_us
    return (idle_us, call_us) if call_us and idle_us >= WORTH_SAYING * call_us else None


def _recorded(side: Side) -> tuple[SyncTime, ...]:
    """As the recording tells them that knows most of the host."""
    return side.host.idle.syncs if side.host.idle else ()


def _made_by(syncs: list[SyncTime]) -> tuple[MadeAt, ...]:
    """Where the calls were made, as far as it is known."""
    return distinct(MadeAt(each.place, each.lines, each.in_eager_code) for each in syncs if each.place or each.lines)
