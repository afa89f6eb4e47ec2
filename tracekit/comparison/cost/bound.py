"""What holds a form back: the host's launching, its waiting, or the GPU's arithmetic, memory, latency or copies?

The whole call is divided into parts, and the largest decides if it is large enough and far enough ahead. docs/bounds.md
gives the rules in full.
"""

import math
from collections.abc import Mapping

from msgspec.structs import replace

from tracekit.comparison.cost.roofline import limits_of, peak_of_side
from tracekit.comparison.matching.operators import KIND_OF_FAMILY
from tracekit.model.analysis import shrink_idle
from tracekit.model.comparison import Bound, BoundIfSlowed, BoundKind, Side, UnknownLimit
from tracekit.model.idle_estimate import MOST_SLOWED, MOST_SLOWED_WITH_STACKS
from tracekit.model.sequence import Activity
from tracekit.model.waterfall import Basis
from tracekit.statements.bounds import bound_because

#: The largest part decides if it is this share of the call, and this many times the next one.
LEAST_SHARE = 0.4
FAR_AHEAD = 1.25

KINDS: dict[str, BoundKind] = {
    "sync": "sync-bound",
    "launch": "launch-bound",
    "copy": "copy-bound",
    "memory": "memory-bound",
    "compute": "compute-bound",
    "small": "latency-bound",
    "communication": "communication-bound",
}

Parts = dict[str, float]


def find_bound(side: Side) -> Bound | None:
    """What holds this side back; None without GPU figures. Products of a side without a sequence, which gives the sizes
    that they were called with, are of no known limit."""
    if side.analysis.idle is None or side.busy_us is None:
        return None
    work, true_us = _work(side), side.unprofiled_idle_us
    basis: Basis = "trace" if true_us is None else "unprofiled"
    # A trace without unprofiled times is judged as it stands, and as if it had been slowed the most.
    slowed = MOST_SLOWED_WITH_STACKS if side.has_stacks else MOST_SLOWED
    if true_us is None:
        whole = {cause: us for cause, us in side.idle_by_cause().items() if cause != "profiler"}
        slowed_us = max((math.fsum(whole.values()) + side.busy_us) / slowed - side.busy_us, 0.0)
        idle = [_parts(side, whole), _parts(side, shrink_idle(whole, slowed_us))]
    else:
        causes = side.calibrated_idle_by_cause() or {}
        idle = [_parts(side, causes, unseen_us=true_us - math.fsum(causes.values()))]
    cases = [{**each, **work} for each in idle]
    kinds: list[BoundKind | None] = []
    for parts in cases:
        # By the largest part; None where that is work of unknown limit, and `mixed` where no part decides.
        largest, next_one = sorted(parts, key=lambda part: -parts[part])[:2]
        whole_us = math.fsum(parts.values())
        if not whole_us or parts[largest] < LEAST_SHARE * whole_us or parts[largest] < FAR_AHEAD * parts[next_one]:
            kinds.append("mixed")
        else:
            kinds.append(None if largest == "unknown" else KINDS.get(largest, "mixed"))
    kind = kinds[0] if len(set(kinds)) == 1 else "mixed"
    items = sum(queue.items for queue in side.analysis.queue or ())
    starved = sum(queue.starved_items for queue in side.analysis.queue or ()) / items if items else None
    unknown: UnknownLimit | None = None
    if cases[0]["unknown"]:
        # What keeps it from being told what limits a product.
        activities = side.sequence.activities if side.sequence else ()
        asked = [each.operator for each in activities if each.family in KIND_OF_FAMILY]
        unknown = "unknown_device" if peak_of_side(side) is None else "sizes_do_not_tell"
        if 2 * sum(bool(operator and operator.dims) for operator in asked) <= len(asked):
            in_graphs = side.analysis.launches and side.analysis.launches.graph_launches
            unknown = "no_sizes_in_graphs" if in_graphs else "no_sizes"
    if_slowed = BoundIfSlowed(slowed, *kinds) if basis == "trace" and kinds != [None, None] else None
    bound = Bound(kind, basis, cases[0], starved, unknown, if_slowed)
    return replace(bound, because=bound_because(bound))


def _parts(side: Side, causes: Mapping[str, float], unseen_us: float = 0.0) -> Parts:
    """Idle time per step by part. What a synchronising call exposed is its part, to the last microsecond of the gap:
    without the call the host would have gone on launching. Where the unprofiled call's is not known, it has the share
    of the host's time that it was recorded with."""
    host, estimate = _host_us(causes), side.idle_estimate
    if estimate is not None and side.unprofiled_idle_us is not None:
        after_us = _host_us({**estimate.after_sync_us, "sync_wait": causes.get("sync_wait", 0.0)})
        sync = min(after_us, host)
    else:
        recorded = side.idle_by_cause()
        syncs = side.analysis.idle.syncs if side.analysis.idle else ()
        exposed = max(math.fsum(each.idle_after_us for each in syncs) / side.steps, recorded.get("sync_wait", 0.0))
        recorded_host = _host_us(recorded)
        sync = min(exposed / recorded_host, 1.0) * host if recorded_host else 0.0
    parts = {"sync": sync, "compile": causes.get("compile", 0.0), "device": causes.get("device", 0.0)}
    # Where causes explain more than there is, launching is less, and the others if that is not enough: parts divide
    # the call.
    launch = host - sync + min(unseen_us, 0.0)
    whole = math.fsum(parts.values())
    left = max(whole + min(launch, 0.0), 0.0) / whole if whole else 0.0
    parts = {part: left * us for part, us in parts.items()}
    return {**parts, "launch": max(launch, 0.0), "unseen": max(unseen_us, 0.0)}


def _host_us(causes: Mapping[str, float]) -> float:
    return math.fsum(us for cause, us in causes.items() if cause not in ("device", "profiler", "compile"))


def _work(side: Side) -> Parts:
    """GPU busy time per step by what limits it. Work that ran side by side counts by its share of the summed times;
    communication counts as far as nothing else ran, and is no part where there is none."""
    times = dict.fromkeys(("copy", "memory", "compute", "small", "neither", "unknown"), 0.0)
    peak = peak_of_side(side)
    if (sequence := side.sequence) is not None and sequence.activities:
        work, counts = sequence.activities, [sequence.per_step] * len(sequence.activities)
    else:
        kernels = side.analysis.kernels.by_name if side.analysis.kernels else ()
        copies = side.analysis.copies.by_name if side.analysis.copies else ()
        work = tuple(Activity(each.name, each.family, each.mean_us, None) for each in (*kernels, *copies))
        counts = [float(each.count) for each in (*kernels, *copies)]
    for activity, count, limit in zip(work, counts, limits_of(work, peak), strict=True):
        if limit != "communication":
            times[limit or "unknown"] += activity.duration_us * count
    total = math.fsum(times.values())
    parts = {part: us / total * (side.compute_us or 0.0) if total else 0.0 for part, us in times.items()}
    return {**parts, "communication": side.exposed_us} if side.analysis.communication else parts
