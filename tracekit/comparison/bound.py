"""What holds a form back: the host's launching, its waiting, or the GPU's arithmetic, memory or copies?

The whole call is divided into parts, and the largest decides if it is large enough and far enough ahead. docs/bounds.md
gives the rules in full.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tracekit.comparison.peaks import peak_of_side
from tracekit.comparison.roofline import limit_of
from tracekit.model.comparison import Basis, Bound, BoundKind, Side
from tracekit.model.sequence import Activity, Sequence

#: The largest part decides if it is this share of the call, and this many times the next one.
LEAST_SHARE = 0.4
FAR_AHEAD = 1.25

#: How many times as long as an unprofiled call a recorded one took at most, where it was measured (H200, torch 2.11):
#: ViT-B compiled with Python stacks 4.24, Qwen2.5-VL eager with operators and sizes 1.99. A trace without unprofiled
#: times is judged as it stands, and as if it had been slowed as much.
WITH_STACKS, WITHOUT_STACKS = 4.25, 2.0

KINDS: dict[str, BoundKind] = {
    "sync": "sync-bound",
    "launch": "launch-bound",
    "copy": "copy-bound",
    "memory": "memory-bound",
    "compute": "compute-bound",
}

#: What a part of the call is, as a sentence goes on after its share.
WORDS = {
    "sync": "the GPU was idle behind a synchronising call",
    "launch": "the GPU was idle because the host had not launched its next work",
    "compile": "the GPU was idle while code was compiled",
    "device": "the GPU was idle between pieces of work that had been launched",
    "copy": "copies ran",
    "memory": "kernels ran whose limit is memory (estimate)",
    "compute": "kernels ran whose limit is arithmetic (estimate)",
    "unknown": "kernels ran whose sizes were not recorded",
}
HOST = ("sync", "launch", "compile")
Parts = dict[str, float]


def find_bound(side: Side, sequence: Sequence | None = None) -> Bound | None:
    """What holds this side back; None without GPU figures. `sequence` gives the sizes that products were called with;
    without it they are of no known limit."""
    recorded = _recorded_idle(side)
    if recorded is None or side.busy_us is None:
        return None
    work, true_us = _work(side, sequence), side.unprofiled_idle_us
    basis: Basis = "trace" if true_us is None else "unprofiled"
    if true_us is None:
        idle = [recorded, _as_if_slowed(side, recorded, side.busy_us)]
    else:
        idle = [_with_idle(recorded, true_us)]
    cases = [{**each, **work} for each in idle]
    kinds = {_decide(each) for each in cases}
    kind = kinds.pop() if len(kinds) == 1 else "mixed"
    starved = _starved_share(side)
    return Bound(kind, basis, cases[0], starved, _because(side, kind, basis, cases, starved))


def _recorded_idle(side: Side) -> Parts | None:
    """Idle time per step as recorded, without the profiler's own. What a synchronising call exposed is its part, to the
    last microsecond of the gap: without the call the host would have gone on launching."""
    idle = side.analysis.idle
    if idle is None:
        return None
    causes = side.idle_by_cause()
    sync = math.fsum(each.idle_after_us for each in idle.syncs) / side.steps
    host = math.fsum(us for cause, us in causes.items() if cause not in ("device", "profiler", "compile"))
    sync = min(max(sync, causes.get("sync_wait", 0.0)), host)
    return {
        "sync": sync,
        "launch": host - sync,
        "compile": causes.get("compile", 0.0),
        "device": causes.get("device", 0.0),
    }


def _with_idle(recorded: Parts, true_us: float) -> Parts:
    """Idle time by part if there is so much of it.

    Recording slows the host, not the GPU: host parts shrink alike, until the whole is right, and the device's only when
    nothing is left of them.
    """
    host = math.fsum(recorded[part] for part in HOST)
    device = min(recorded["device"], true_us) if host else true_us
    factor = (true_us - device) / host if host else 0.0
    return {part: us * factor if part in HOST else device for part, us in recorded.items()}


def _as_if_slowed(side: Side, recorded: Parts, busy_us: float) -> Parts:
    """The recorded idle time, if the call itself was shorter by as much as recording was ever seen to lengthen one."""
    window = math.fsum(recorded.values()) + busy_us
    return _with_idle(recorded, max(window / _most_slowed(side) - busy_us, 0.0))


def _most_slowed(side: Side) -> float:
    stacks = any(each.code == "python_stacks_recorded" for each in side.analysis.health)
    return WITH_STACKS if stacks else WITHOUT_STACKS


def _work(side: Side, sequence: Sequence | None) -> Parts:
    """GPU busy time per step by what limits it. Work that ran side by side counts by its share of the summed times."""
    times = dict.fromkeys(("copy", "memory", "compute", "unknown"), 0.0)
    peak = peak_of_side(side)
    for activity, count in _activities(side, sequence):
        times[limit_of(activity, peak) or "unknown"] += activity.duration_us * count
    total = math.fsum(times.values())
    return {part: us / total * (side.busy_us or 0.0) if total else 0.0 for part, us in times.items()}


def _activities(side: Side, sequence: Sequence | None) -> Iterable[tuple[Activity, float]]:
    if sequence is not None and sequence.activities:
        return [(activity, sequence.per_step) for activity in sequence.activities]
    kernels = side.analysis.kernels.by_name if side.analysis.kernels else ()
    copies = side.analysis.copies.by_name if side.analysis.copies else ()
    return [(Activity(each.name, each.family, each.mean_us, None), each.count) for each in (*kernels, *copies)]


def _decide(parts: Mapping[str, float]) -> BoundKind | None:
    """By the largest part; None where that is work of unknown limit, and `mixed` where no part decides."""
    largest, next_one = sorted(parts, key=lambda part: -parts[part])[:2]
    whole = math.fsum(parts.values())
    if not whole or parts[largest] < LEAST_SHARE * whole or parts[largest] < FAR_AHEAD * parts[next_one]:
        return "mixed"
    return None if largest == "unknown" else KINDS.get(largest, "mixed")


def _starved_share(side: Side) -> float | None:
    queues = side.analysis.queue or ()
    items = sum(queue.items for queue in queues)
    return sum(queue.starved_items for queue in queues) / items if items else None


def _because(side: Side, kind: BoundKind | None, basis: Basis, cases: list[Parts], starved: float | None) -> str:
    text = _shares(cases[0], "unprofiled call" if basis == "unprofiled" else "recorded window")
    if starved is not None and kind == "launch-bound":
        text += f"; {starved:.0%} of the launches found nothing in flight, as recorded"
    return text if basis == "unprofiled" else f"{text}; {_if_slowed(side, cases)}"


def _shares(parts: Mapping[str, float], whole_is: str) -> str:
    """The two largest parts in words, the second if it is a tenth at least."""
    whole = math.fsum(parts.values())
    if not whole:
        return f"nothing was recorded in the {whole_is}"
    first, second = sorted(parts, key=lambda part: -parts[part])[:2]
    text = f"for {parts[first] / whole:.0%} of the {whole_is} {WORDS[first]}"
    return text + (f", for {parts[second] / whole:.0%} {WORDS[second]}" if parts[second] >= 0.1 * whole else "")


def _if_slowed(side: Side, cases: list[Parts]) -> str:
    """What the same trace says if recording slowed the call as much as it was ever seen to."""
    as_recorded, slowed = (_decide(each) or "not known" for each in cases)
    factor = f"{_most_slowed(side):g} times"
    if as_recorded == slowed:
        return f"that is the trace's own account, and the same if recording slowed the call {factor}"
    return (
        f"by the trace's own account it is {as_recorded}, and {slowed} if recording slowed the call {factor}:"
        " unprofiled times would tell"
    )
