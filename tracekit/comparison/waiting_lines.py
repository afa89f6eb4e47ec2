"""Which lines of the program wait for the GPU? Told from what the eager form's operators copied to or from the host.

A recording of a GPU tells the call and at most the operator around it; the pass that tags eager operators knows the
line of each, and what it launched. Such copies wait: on an H200 one step of Qwen2.5-VL had 139 calls of
`cudaStreamSynchronize`, and the operators of 139 such copies.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tracekit.model.analysis import Analysis, SyncTime
from tracekit.model.comparison import Side
from tracekit.model.provenance import EagerOps
from tracekit.numbers import counted

#: The ends of a copy for which the host waits; of pinned memory it waits in a call of its own.
TO_HOST, PAGEABLE = "Memcpy DtoH", "Pageable"
#: Calls that wait for a copy.
COPYING, WAITING = "memcpy", "streamsynchronize"
#: So many lines are named.
NAMED = 3


def with_waiting_lines(a: Side, b: Side) -> tuple[Side, Side]:
    """Both sides with the lines in `SyncTime.where`, where one of them is an eager form whose operators were tagged."""
    eager = next((side.provenance for side in (a, b) if isinstance(side.provenance, EagerOps)), None)
    return (a, b) if eager is None else (_told(a, eager), _told(b, eager))


def _told(side: Side, eager: EagerOps) -> Side:
    if side.form is None:
        return side
    rich = _with_lines(side.rich, eager, side.form.name) if side.rich else None
    return replace(side, analysis=_with_lines(side.analysis, eager, side.form.name), rich=rich)


def _with_lines(analysis: Analysis, eager: EagerOps, form: str) -> Analysis:
    if analysis.idle is None:
        return analysis
    syncs = tuple(_with_line(sync, eager, form) for sync in analysis.idle.syncs)
    return replace(analysis, idle=replace(analysis.idle, syncs=syncs))


def _with_line(sync: SyncTime, eager: EagerOps, form: str) -> SyncTime:
    lines = waiting_lines(eager, pageable=COPYING in sync.call.lower())
    if not lines or not any(word in sync.call.lower() for word in (COPYING, WAITING)):
        return sync
    told = ", ".join(f"{line} ({number})" if number > 1 else line for line, number in lines.most_common(NAMED))
    more = f" and {counted(len(lines) - NAMED, 'line')} more" if len(lines) > NAMED else ""
    of = "" if form == "eager" else "in eager code "
    return replace(sync, where=f"{sync.where}, {of}at {told}{more}" if sync.where else f"{of}at {told}{more}")


def waiting_lines(eager: EagerOps, *, pageable: bool) -> Counter[str]:
    """How often each line of one eager call waits for a copy; `pageable`: from or to pageable memory alone."""
    return Counter(
        line
        for each in eager.activities
        if each.op is not None and _waits(each.name, pageable=pageable) and (line := eager.ops[each.op].line)
    )


def _waits(name: str, *, pageable: bool) -> bool:
    return "Memcpy" in name and (PAGEABLE in name or (not pageable and name.startswith(TO_HOST)))
