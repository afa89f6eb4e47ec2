"""What was each kind of collective of a fleet, and which single ones did its ranks wait in most?"""

from collections.abc import Sequence
from typing import Any

import polars as pl
from msgspec.structs import replace

from tracekit.ranks.collectives import BUS_FACTORS, HARDLY, MOST_WORST, MOSTLY, VARYING
from tracekit.ranks.digests import RankSummary, Talk
from tracekit.ranks.fleets.clocks import FleetClocks
from tracekit.ranks.fleets.waits import FleetWaits
from tracekit.ranks.job_figures import (
    CollectiveClass,
    CollectivePart,
    CollectiveUse,
    OneCollective,
    RankTimes,
    RankWait,
)


def sum_kinds(talk: Sequence[Talk], waits: FleetWaits, clocks: FleetClocks) -> tuple[CollectiveUse, ...]:
    """A row for each kind, group and size, the one with most time first; of a large fleet there are thousands."""
    rows = _rows(talk, waits)
    of_kind = rows.group_by("kind", maintain_order=True)
    bare = 1 - pl.col("covered") / pl.col("lasting").clip(1)
    sums = of_kind.agg(
        talk=pl.col("talk").first(),
        count=pl.col("collective").n_unique(),
        transfer=(pl.col("lasting") - pl.col("waited")).sum(),
        usual=(pl.col("lasting") - pl.col("waited")).median(),
        waiting=pl.col("waited").sum(),
        exposed=((pl.col("lasting") - pl.col("waited")) * bare).sum(),
        sequenced=(pl.col("sequence") >= 0).all(),
    )
    single = rows.group_by("kind", "collective").agg(
        spread=(pl.col("last") - pl.col("first")).first(), last_rank=pl.col("last_rank").first()
    )
    spreads = dict(single.group_by("kind").agg(pl.col("spread").median()).iter_rows())
    lates: dict[int, list[RankTimes]] = {}
    late = single.filter((pl.col("spread") > 0) & (pl.col("last_rank") >= 0)).group_by("kind", "last_rank").len()
    for kind, rank, count in late.sort("kind", "len", "last_rank", descending=[False, True, False]).iter_rows():
        lates.setdefault(kind, []).append(RankTimes(rank, count))
    waited: dict[int, list[RankWait]] = {}
    by_rank = rows.group_by("kind", "rank").agg(pl.col("waited").sum() / 1e3).sort("kind", "rank")
    for kind, rank, us in by_rank.iter_rows():
        waited.setdefault(kind, []).append(RankWait(rank, us))
    found = []
    for row in sums.iter_rows(named=True):
        kind = row["kind"]
        ranks = tuple(each.rank for each in waited[kind])
        found.append(
            CollectiveUse(
                **_figures(talk[row["talk"]], ranks, row, spreads[kind], clocks),
                late_ranks=tuple(lates.get(kind, ())),
                waiting_us=tuple(waited[kind]),
            )
        )
    return tuple(sorted(found, key=lambda each: -((each.transfer_us or 0.0) + sum(it.us for it in each.waiting_us))))


def _rows(talk: Sequence[Talk], waits: FleetWaits) -> pl.DataFrame:
    """Each part that was joined, with the kind that its collective is of. A kernel that exchanges with several ranks is
    of several."""
    kinds: dict[object, int] = {}
    numbers = []
    for each in talk:
        apart = each.exchange == "pairs"
        ranks: object = (each.targets, each.sources, each.ranks) if apart else each.ranks or each.size
        width = None if each.collective == VARYING else each.bytes
        numbers.append(kinds.setdefault((each.collective, each.group, ranks, each.dtype, width), len(kinds)))
    lasting = pl.col("end") - pl.col("start")
    rows = waits.joined("rank", "talk", "covered", "sequence", lasting=lasting).rename({"waiting": "waited"})
    pair = pl.Series([each.exchange == "pairs" for each in talk], dtype=pl.Boolean).gather(rows["talk"])
    # A pair is called as its rank of the lowest number calls it.
    pairs = rows.filter(pair).with_columns(pl.col("talk").sort_by("rank").first().over("collective"))
    whole = pl.concat([rows.filter(~pair), pairs])
    return whole.with_columns(kind=pl.Series(numbers, dtype=pl.Int64).gather(whole["talk"]))


def _figures(
    talk: Talk, ranks: tuple[int, ...], row: dict[str, float], spread_ns: float | None, clocks: FleetClocks
) -> dict[str, Any]:
    share = row["waiting"] / max(row["waiting"] + row["transfer"], 1)
    kind: CollectiveClass = "waiting" if share >= MOSTLY else "mixed" if share > HARDLY else "transfer"
    known = clocks.basis != "bound"
    if not known or (share > HARDLY and (spread_ns or 0) <= (clocks.uncertainty_ns or 0.0)):
        kind = "inconclusive"
    algorithm = talk.bytes / row["usual"] if talk.bytes is not None and row["usual"] > 0 else None
    factor, n = BUS_FACTORS.get(talk.collective), talk.size or len(ranks)
    pair = talk.exchange == "pairs"
    return {
        "name": talk.collective,
        "group": talk.group,
        "ranks": ranks if pair else talk.ranks or ranks,
        "dtype": talk.dtype,
        "bytes": talk.bytes,
        "count": int(row["count"]),
        "transfer_us": row["transfer"] / 1e3,
        "arrival_spread_us": (spread_ns or 0) / 1e3 if known else None,
        "algbw_gbps": algorithm,
        "busbw_gbps": algorithm * factor(n) if algorithm and factor and n else algorithm,
        "peak_gbps": None,
        "exposed_transfer_us": row["exposed"] / 1e3,
        "kind": kind,
        "matched_by": "pair" if pair else "sequence" if row["sequenced"] else "signature",
        "rank_bytes": (),
    }


def list_worst(
    talk: Sequence[Talk], waits: FleetWaits, clocks: FleetClocks, summaries: dict[int, RankSummary]
) -> tuple[OneCollective, ...]:
    """The single collectives with most waiting, the most first."""
    lasting = pl.col("end") - pl.col("start")
    worst = waits.members.group_by("collective", maintain_order=True).agg(pl.col("waiting").sum())
    worst = worst.filter(pl.col("waiting") > 0).sort("waiting", descending=True).head(MOST_WORST)
    chosen = replace(waits, members=waits.members.filter(pl.col("collective").is_in(worst["collective"].implode())))
    every = chosen.joined("rank", "talk", "start", "step", "sequence", "covered", lasting=lasting)
    zero = int(waits.parts["start"].min() or 0)  # type: ignore[arg-type]
    found = []
    for collective in worst["collective"]:
        rows = every.filter(pl.col("collective") == collective).sort("rank")
        first = rows.row(0, named=True)
        one, ranks = talk[first["talk"]], tuple(rows["rank"].to_list())
        transfer = rows["lasting"] - rows["waiting"]
        sums = {
            "count": 1,
            "transfer": float(transfer.sum()),
            "usual": float(transfer.median() or 0.0),  # type: ignore[arg-type]
            "waiting": float(rows["waiting"].sum()),
            "exposed": float((transfer * (1 - rows["covered"] / rows["lasting"].clip(1))).sum()),
            "sequenced": first["sequence"] >= 0,
        }
        steps = summaries[first["rank"]].steps
        parts = rows.select("rank", "start", "waiting", "lasting").iter_rows()
        found.append(
            OneCollective(
                **_figures(one, ranks, sums, first["last"] - first["first"], clocks),
                late_ranks=(RankTimes(first["last_rank"], 1),),
                waiting_us=tuple(RankWait(rank, ns / 1e3) for rank, ns in rows.select("rank", "waiting").iter_rows()),
                start_us=(first["first"] - zero) / 1e3,
                last_rank=first["last_rank"],
                parts=tuple(
                    CollectivePart(rank, (start - zero) / 1e3, waited / 1e3, (lasted - waited) / 1e3)
                    for rank, start, waited, lasted in parts
                ),
                number=collective + 1,
                step=steps[first["step"]] if steps else None,
                causes=(),
            )
        )
    return tuple(found)
