"""All ranks, hosts and links, tested together: what of them are stragglers?"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit.interval import Floats, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.digests import RankSummary, Talk
from tracekit.ranks.fleets.collectives import BUS_FACTORS, VARYING
from tracekit.ranks.fleets.runs import Runs, in_order
from tracekit.ranks.fleets.steps import Steps
from tracekit.ranks.fleets.stragglers import (
    FALSE_ALARMS,
    LEAST_EXCESS,
    LEAST_OF_LINK,
    LEAST_PEERS,
    Excess,
    excess_of,
    known_median,
    shares_of_steps,
    usual_of_peers,
)
from tracekit.ranks.fleets.waits import FleetWaits
from tracekit.ranks.job_figures import CauseShare, Straggler, StragglerRule, WaitedFor
from tracekit.statistics.chance import holm

#: Smaller messages are all latency; of fewer collectives no link is judged.
LEAST_BYTES, LEAST_COUNT = 1 << 20, 3
#: Of fewer ranks a host is no more than they.
LEAST_ON_HOST = 3
#: Compute beside communication takes so much longer at most: DDP's buckets that wait for a late rank cost the kernels
#: beside them a fifth of the time they share.
MOST_PRICE = 0.35


class _Family(Struct, frozen=True):
    """Units of one kind that were tested, and in what."""

    units: list[dict[str, Any]]  #: Fields of a `Straggler`.
    shares: Floats
    excess: Excess
    least: float


def find_stragglers(
    summaries: dict[int, RankSummary],
    steps: Steps,
    waits: FleetWaits,
    talk: Sequence[Talk],
    waited: Sequence[WaitedFor],
    *,
    aligned: bool,
) -> tuple[StragglerRule | None, tuple[Straggler, ...]]:
    """Compute that ran beside more communication than the peers' is not counted at its worst price. Links are tested
    where clocks are `aligned`: when the last of a group came is unknown otherwise. No rule where nothing was tested."""
    shares = shares_of_steps(steps.own - MOST_PRICE * steps.held, steps.peers)
    units: list[dict[str, Any]] = [{"kind": "rank", "name": None, "ranks": (int(rank),)} for rank in steps.ranks]
    families = [_Family(units, shares, excess_of(shares, steps.peers), LEAST_EXCESS)]
    families += _hosts(summaries, shares)
    if aligned:
        families += _links(summaries, waits, talk)
    chances = [float(each) for family in families for each in family.excess.chance]
    if all(each >= 1 for each in chances):
        return None, ()
    corrected = iter(holm(chances))
    found: list[Straggler] = []
    for family in families:
        for at, unit in enumerate(family.units):
            chance, share = next(corrected), float(family.excess.share[at])
            if chance > FALSE_ALARMS or share < family.least:
                continue
            values = family.shares[at][~np.isnan(family.shares[at])]
            half = float(family.excess.half[at])
            found.append(
                Straggler(
                    excess=share,
                    ci95=(share - half, share + half),
                    beyond=float(family.excess.beyond[at]),
                    chance=chance,
                    steps=len(values),
                    steps_slower=int((values > 0).sum()),
                    **unit,
                    **(_losses(unit["ranks"], steps, waited) if unit["kind"] != "link" else {}),
                )
            )
    rule = StragglerRule(FALSE_ALARMS, "holm", len(chances), LEAST_EXCESS, LEAST_OF_LINK)
    # A rank of a slow host is told with it.
    of_hosts = {rank for each in found if each.kind == "host" for rank in each.ranks}
    kept = (each for each in found if each.kind != "rank" or each.ranks[0] not in of_hosts)
    return rule, tuple(sorted(kept, key=lambda each: (each.kind == "link", -each.excess)))


def _hosts(summaries: dict[int, RankSummary], shares: Floats) -> list[_Family]:
    """A host is as slow as the median of its ranks."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, each in enumerate(summaries.values()):
        if each.host_name is not None:
            rows[each.host_name].append(row)
    some = {name: own for name, own in sorted(rows.items()) if len(own) >= LEAST_ON_HOST}
    if len(some) < LEAST_PEERS:
        return []
    medians = np.stack([known_median(shares[own], axis=0) for own in some.values()])
    ranks = [*summaries]
    units: list[dict[str, Any]] = [
        {"kind": "host", "name": name, "ranks": tuple(ranks[row] for row in own)} for name, own in some.items()
    ]
    return [_Family(units, medians, excess_of(medians, np.zeros(len(some), dtype=np.int64)), LEAST_EXCESS)]


def _links(summaries: dict[int, RankSummary], waits: FleetWaits, talk: Sequence[Talk]) -> Iterator[_Family]:
    """Process groups, and pairs of ranks, by the time their transfers take once all have come: nobody is late there.
    All-to-alls, which may be of other bytes each time, by the time for as many as is usual."""
    kinds: dict[tuple[str, str | None, int | None, int | None], int] = {}
    links: dict[tuple[str | None, tuple[int, ...]], int] = {}
    of_talk = []
    for each in talk:
        pair = each.exchange == "pairs"
        width = None if each.collective == VARYING else each.bytes
        size = 2 if pair else len(each.ranks) or each.size
        kind = kinds.setdefault(("send" if pair else each.collective, each.dtype, width, size), len(kinds))
        link = links.setdefault((each.group, () if pair else each.ranks), len(links))
        of_talk.append((kind, link, pair))
    known = pl.DataFrame(of_talk, schema={"kind": pl.Int64, "link": pl.Int64, "pair": pl.Boolean}, orient="row")
    single = _transfers(summaries, waits, talk).filter(pl.col("ns") > 0).sort("begun", "collective")
    single = single.hstack(known[single["talk"]])
    ends = (pl.when("pair").then(name).alias(name) for name in ("first", "to"))
    of_links = single.with_columns(ends).group_by("kind", "across", "link", "first", "to", maintain_order=True)
    every = of_links.agg("ns", "width").filter(pl.col("ns").list.len() >= LEAST_COUNT)
    for (kind, _), rows in every.partition_by("kind", "across", maintain_order=True, as_dict=True).items():
        if rows.height < LEAST_PEERS:
            continue
        name, _, _, size = [*kinds][kind]
        known_links = [*links]
        groups = []
        for link, first, to in rows.select("link", "first", "to").iter_rows():
            group, ranks = known_links[link]
            groups.append((group, ranks if first is None else (first, to)))
        ns, widths = ([each.to_numpy() for each in rows[column]] for column in ("ns", "width"))
        yield _family(name, size, groups, ns, widths)


def _transfers(summaries: dict[int, RankSummary], waits: FleetWaits, talk: Sequence[Talk]) -> pl.DataFrame:
    """A row for each large collective: its `talk`; how many `ns` its transfer took and of what `width`; when it had
    `begun`, its `first` and last (`to`) rank; whether it is `across` hosts."""
    widths = np.array([each.bytes or 0 for each in talk], dtype=np.int64)
    hosts: dict[str, int] = {}
    of_rank = np.zeros(max(summaries) + 1, dtype=np.int64)
    for rank, one in summaries.items():
        of_rank[rank] = hosts.setdefault(one.host_name or f"rank {rank}", len(hosts))
    collective, part = (waits.members[name].to_numpy() for name in ("collective", "part"))
    kind = waits.parts["talk"].to_numpy()[part]
    kept = widths[kind] >= LEAST_BYTES
    collective, part, kind = collective[kept], part[kept], kind[kept]
    runs = Runs(collective)
    rank, end = (waits.parts[name].to_numpy()[part] for name in ("rank", "end"))
    last, host = waits.collectives["last"].to_numpy(), of_rank[rank]
    return pl.DataFrame(
        {
            "collective": runs.numbers,
            "ns": runs.medians(end - last[collective]),
            "width": runs.most(widths[kind]),
            "talk": runs.least(kind),
            "begun": last[runs.numbers],
            "first": runs.least(rank),
            "to": runs.most(rank),
            "across": runs.least(host) != runs.most(host),
        }
    )


def _family(
    name: str, size: int | None, links: list[tuple[str | None, tuple[int, ...]]], ns: list[Floats], widths: list[Ints]
) -> _Family:
    """Of one kind of collective the links by their groups, and nanoseconds and bytes of each one's transfers."""
    usual_bytes = float(np.median(np.concatenate(widths)))
    lasting = np.full((len(links), max(map(len, ns))), np.nan)
    for row, (own, width) in enumerate(zip(ns, widths, strict=True)):
        lasting[row, : len(own)] = own * usual_bytes / width
    middles = known_median(lasting, axis=1)
    usual = float(known_median(middles))
    shares = lasting / usual - 1
    factor = BUS_FACTORS.get(name)
    carried = usual_bytes * (factor(size) if factor and size else 1)
    units: list[dict[str, Any]] = [
        {
            "kind": "link",
            "name": group,
            "ranks": ranks,
            "collective": name,
            "bytes": round(usual_bytes),
            "busbw_gbps": carried / middle,
            "usual_gbps": carried / usual,
            "lost_us": float(np.nansum(own - usual)) / 1e3,
            "causes": (),
            "waited_us": None,
        }
        for (group, ranks), own, middle in zip(links, lasting, middles.tolist(), strict=True)
    ]
    return _Family(units, shares, excess_of(shares, np.zeros(len(links), dtype=np.int64)), LEAST_OF_LINK)


def sum_waits(waits: FleetWaits) -> tuple[WaitedFor, ...]:
    """How long each rank waited for each other."""
    rank, late, waiting = (waits.parts[name].to_numpy() for name in ("rank", "late", "waiting"))
    some = np.flatnonzero((late >= 0) & (waiting > 0))
    rows = some[in_order(rank[some], late[some])]
    runs = Runs(rank[rows] * (int(late.max(initial=0)) + 1) + late[rows])
    first = rows[runs.first]
    told = (each.tolist() for each in (rank[first], late[first], runs.sums(waiting[rows]) / 1e3))
    return tuple(map(WaitedFor, *told))


def _losses(ranks: tuple[int, ...], steps: Steps, waited: Sequence[WaitedFor]) -> dict[str, Any]:
    """Fields of a `Straggler`: what these ranks lost, and why: what they have more of than their peers."""
    own = np.isin(steps.ranks, ranks)
    spent = (steps.compute[..., np.newaxis], steps.idle)
    compute, idle = (np.nansum((each - usual_of_peers(each, steps.peers))[own], axis=1) for each in spent)
    lost_us = float(np.median(compute[:, 0] + idle.sum(axis=1)))
    causes = zip(("compute", *IDLE_CAUSES), np.hstack((compute, idle)).sum(axis=0).tolist(), strict=True)
    made = sorted(((cause, us) for cause, us in causes if us > 0), key=lambda one: -one[1])
    whole = sum(us for _, us in made) or 1.0
    shares = tuple(CauseShare(cause, lost_us * us / whole) for cause, us in made)
    return {"lost_us": lost_us, "causes": shares, "waited_us": sum(one.us for one in waited if one.late in ranks)}
