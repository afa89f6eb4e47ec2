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
    "sync": "the GPU had nothing to do because the host had waited for it (synchronising calls)",
    "launch": "the GPU had nothing to do because the host had not launched the next work yet",
    "compile": "the GPU had nothing to do while code was compiled",
    "device": "the GPU paused between pieces of work that had been launched",
    "copy": "the GPU copied memory",
    "memory": "the GPU ran kernels that are limited by memory (estimate)",
    "compute": "the GPU ran kernels that are limited by arithmetic (estimate)",
}
#: From this share of the call on a second part, and work of unknown limit, is worth a word.
SECOND, UNKNOWN = 0.1, 0.02
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
    sentences = [
        _shares(cases[0], "call" if basis == "unprofiled" else "recording", _why_unknown(side, sequence)),
        _starved(starved) if starved is not None and kind == "launch-bound" else "",
        _if_slowed(side, cases) if basis == "trace" else "",
    ]
    return Bound(kind, basis, cases[0], starved, ". ".join(filter(None, sentences)))


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


def _why_unknown(side: Side, sequence: Sequence | None) -> str:
    """What keeps it from being told what limits a product."""
    if sequence is None or not any(activity.operator and activity.operator.dims for activity in sequence.activities):
        if side.analysis.launches and side.analysis.launches.graph_launches:
            return "kernels of CUDA graphs are recorded without sizes; --ops lends those of another trace"
        return "the sizes of their inputs were not recorded; record_shapes=True records them"
    if peak_of_side(side) is None:
        return "what this device can do at most is not known here"
    return "the recorded sizes and types do not tell it"


def _shares(parts: Mapping[str, float], whole_is: str, why_unknown: str) -> str:
    """The two largest parts in words, the second if it is a tenth at least, and what cannot be told."""
    whole = math.fsum(parts.values())
    if not whole:
        return f"nothing was seen in the {whole_is}"
    first, second = sorted(parts, key=lambda part: -parts[part])[:2]
    named = [part for part in (first, second) if part == first or parts[part] >= SECOND * whole]
    if "unknown" not in named and parts["unknown"] >= UNKNOWN * whole:
        named.append("unknown")
    words = WORDS | {"unknown": f"the GPU ran products of unknown limit ({why_unknown})"}
    each = [f"in {_percent(parts[part] / whole)} {words[part]}" for part in named]
    each[0] = each[0].replace(" %", f" % of the {whole_is}", 1)
    return "; ".join(each)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _starved(share: float) -> str:
    return f"At {_percent(share)} of the launches, as recorded, the GPU had run out of work"


def _if_slowed(side: Side, cases: list[Parts]) -> str:
    """What the same trace says if recording slowed the call as much as it was ever seen to."""
    if all(_decide(each) is None for each in cases):
        return ""
    as_recorded, slowed = (_decide(each) or "of unknown limit" for each in cases)
    longer = f"recording made the call {_most_slowed(side):g} times as long, the most that was ever measured"
    if as_recorded == slowed:
        return f"Even if {longer}, the answer is the same"
    return f"As recorded it is {as_recorded}; if {longer}, it is {slowed}: only times without the profiler can tell"
