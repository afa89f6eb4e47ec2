"""How do the clocks of a fleet's hosts run beside each other? By the ends of collectives, as `ranks.clocks`; few hosts
share a collective with all others, so offsets are passed on from host to host."""

from collections import defaultdict

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit.interval import Floats
from tracekit.ranks.clocks import (
    FAR,
    LEAST_FOR_DRIFT,
    LEAST_FOR_OFFSET,
    LEAST_TOLERANCE_NS,
    MOST_DRIFT,
    ONE_CLOCK_NS,
    slope,
)
from tracekit.ranks.job_figures import ClockBasis

#: How often hosts are moved onto the middle of all, and by how many of a host's collectives at most.
TURNS, MOST_ENDS = 3, 80
#: Ends over a network lie further apart than on one host.
OVER_A_NETWORK = 4


class FleetClocks(Struct, frozen=True):
    """`moved_ns` is what is added to each part's times."""

    moved_ns: Floats
    basis: ClockBasis
    uncertainty_ns: float | None
    hosts: int
    tolerance_ns: float


def align_hosts(every: pl.DataFrame, barriers: pl.DataFrame) -> FleetClocks:
    """`every` and `barriers` are those of `Parts`."""
    hosts = int(every["host"].n_unique())
    ends = barriers.join(every.select("part", "host", "end"), on="part", maintain_order="left")
    table = ends.group_by("collective", "host").agg(pl.col("end").median())
    shared = table.filter(pl.col("host").n_unique().over("collective") > 1).sort("collective", "host")
    # A host whose ranks recorded no collective has a number too.
    numbered = int(every["host"].max() or 0) + 1  # type: ignore[arg-type]
    offsets, drifts = np.zeros(numbered), np.zeros(numbered)
    since = float(shared["end"].min() or 0.0)  # type: ignore[arg-type]
    if shared.height:
        offsets = _passed_on(shared, numbered)
        _polish(shared, offsets, drifts, since)
    of_part = every["host"].to_numpy()
    moved = offsets[of_part] + drifts[of_part] * (every["start"].to_numpy() - since)
    over = ends["end"].to_numpy() + moved[ends["part"].to_numpy()]
    apart = (
        ends.select("collective", over=pl.Series(over))
        .group_by("collective")
        .agg((pl.col("over").max() - pl.col("over").min()).alias("apart"))
    )
    usual = float(apart["apart"].median() or 0.0) if apart.height else None  # type: ignore[arg-type]
    known = usual is not None and usual <= ONE_CLOCK_NS * (OVER_A_NETWORK if hosts > 1 else 1)
    basis: ClockBasis = "bound" if not known else "one_host" if hosts == 1 else "aligned"
    return FleetClocks(moved, basis, usual, hosts, max(FAR * (usual or 0.0), LEAST_TOLERANCE_NS))


def _passed_on(shared: pl.DataFrame, hosts: int) -> Floats:
    """Offsets along a tree of hosts that share collectives, from the one with most."""
    first = shared.with_columns(
        other=pl.col("host").first().over("collective"), other_end=pl.col("end").first().over("collective")
    ).filter(pl.col("host") != pl.col("other"))
    edges = first.group_by("host", "other").agg((pl.col("other_end") - pl.col("end")).median().alias("ns"), pl.len())
    enough = edges.filter(pl.col("len") >= LEAST_FOR_OFFSET).sort("host", "other")
    near: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for host, other, ns in enough.select("host", "other", "ns").iter_rows():
        near[other].append((host, ns))
        near[host].append((other, -ns))
    offsets, seen = np.zeros(hosts), set[int]()
    for root in sorted(near, key=lambda host: (-len(near[host]), host)):
        open_ = [] if root in seen else [root]
        seen.add(root)
        for host in open_:
            for other, ns in near[host]:
                if other not in seen:
                    seen.add(other)
                    offsets[other] = offsets[host] + ns
                    open_.append(other)
    return offsets


def _polish(shared: pl.DataFrame, offsets: Floats, drifts: Floats, since: float) -> None:
    """Moves each host by a line onto the middle of all that share its collectives, a few times."""
    host, ends = shared["host"].to_numpy(), shared["end"].to_numpy()
    rows = {int(each): np.flatnonzero(host == each) for each in np.unique(host)}
    some = {each: own[np.linspace(0, len(own) - 1, min(len(own), MOST_ENDS)).astype(int)] for each, own in rows.items()}
    for _ in range(TURNS):
        now = ends + offsets[host] + drifts[host] * (ends - since)
        middle = shared.select("collective", now=pl.Series(now)).select(pl.col("now").median().over("collective"))
        rest = middle["now"].to_numpy() - now
        for each, own in rows.items():
            drift = 0.0
            if len(own) >= LEAST_FOR_DRIFT:
                drift = slope(ends[some[each]] - since, rest[some[each]])
                drift = drift if abs(drift) <= MOST_DRIFT else 0.0
            drifts[each] += drift
            offsets[each] += float(np.median(rest[own] - drift * (ends[own] - since)))
