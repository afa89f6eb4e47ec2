"""What was each collective of a job, one by one and by kind?"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.interval import Floats
from tracekit.ranks.activities import compute_of
from tracekit.ranks.fleets.accounts import bare_share
from tracekit.ranks.fleets.runs import Runs
from tracekit.ranks.job_figures import (
    CollectiveClass,
    CollectivePart,
    CollectiveUse,
    OneCollective,
    RankBytes,
    RankTimes,
    RankWait,
)
from tracekit.ranks.joined import Joined
from tracekit.ranks.late_ranks import LatePlaces, causes_of
from tracekit.ranks.lateness import Lateness
from tracekit.ranks.links import peak_gbps

#: Of a collective's time over its ranks: more is waiting, less than the second is transfer.
MOSTLY, HARDLY = 2 / 3, 1 / 3
#: What a rank sends, by what the collective carries: NCCL tests' doc/PERFORMANCE.md.
BUS_FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
}
VARYING = "all_to_all"
#: So many single collectives are the worst.
MOST_WORST = 20


def class_of(waiting: float, transfer: float) -> CollectiveClass:
    """What most of a time over ranks is."""
    share = waiting / max(waiting + transfer, 1e-9)
    return "waiting" if share >= MOSTLY else "mixed" if share > HARDLY else "transfer"


class CollectiveTable:
    """What is known of each collective of the job by its number."""

    def __init__(self, joined: Joined) -> None:
        self.joined = joined
        waits, talk = joined.waits, joined.parts.talk
        rows = waits.parts.select(
            *("rank", "talk", "start", "step"),
            exposed=pl.Series(_exposed(joined)),
            lasting=pl.col("end") - pl.col("start"),
        )
        rows = waits.members.drop("late").hstack(rows[waits.members["part"]])
        self.runs = Runs(waits.members["collective"].to_numpy())
        singles = waits.collectives.with_columns(talk=rows["talk"][self.runs.first])
        known = singles.select("talk", "group", "how").unique(maintain_order=True)
        kinds: dict[tuple[object, ...], int] = {}
        numbers = []
        for at, *others in known.iter_rows():
            each = talk[at]
            # What ranks give each other in an all-to-all differs from one to the next.
            width = None if each.collective == VARYING else each.bytes
            key = (each.collective, each.group, each.size, each.dtype, width, *others)
            numbers.append(kinds.setdefault(key, len(kinds)))
        known = known.with_columns(kind=pl.Series(numbers, dtype=pl.Int64))
        #: Each collective at its number, and its parts.
        self.alone = singles.join(known, on=["talk", "group", "how"], maintain_order="left")
        self.rows = rows.with_columns(kind=self.alone["kind"].gather(rows["collective"]))

    def by_kind(self) -> tuple[CollectiveUse, ...]:
        """A row for each kind, group and size; the one with most time first."""
        found = [CollectiveUse(**each) for each in self._figures("kind", self.rows)]
        return tuple(
            sorted(found, key=lambda each: -((each.transfer_us or 0.0) + sum(it.us for it in each.waiting_us)))
        )

    def worst(self) -> tuple[int, ...]:
        """The collectives in which ranks waited longest, all together."""
        waited = self.runs.sums(self.rows["waiting"].to_numpy())
        longest = np.argsort(-waited, kind="stable")[:MOST_WORST]
        return tuple(longest[waited[longest] > 0].tolist())

    def singles(
        self, numbers: Sequence[int], lateness: Iterable[Lateness], places: LatePlaces | None = None
    ) -> tuple[OneCollective, ...]:
        """These, each alone, with what made its last rank late, and where, if `places` are asked."""
        why = {each.collective: each for each in lateness if each.collective in numbers}
        where = {at: next(iter(places.of([why[at]])), None) for at in sorted(why)} if places else {}
        rows = self.rows.filter(pl.col("collective").is_in(numbers))
        known, zero = self.joined.clocks.known, self.joined.zero_ns
        members = {number: table for (number,), table in rows.partition_by("collective", as_dict=True).items()}
        figures = dict(zip(members, self._figures("collective", rows), strict=True))
        found = []
        for number in numbers:
            table = members[number]
            parts = tuple(
                CollectivePart(rank, (start - zero) / 1e3 if known else None, waited / 1e3, (lasted - waited) / 1e3)
                for rank, start, waited, lasted in table.select("rank", "start", "waiting", "lasting").iter_rows()
            )
            steps = self.joined.job.digests[parts[0].rank].steps
            found.append(
                OneCollective(
                    **figures[number],
                    start_us=min((each.start_us for each in parts if each.start_us is not None), default=None),
                    last_rank=self.alone["last_rank"][number] if known else None,
                    parts=parts,
                    number=number + 1,
                    step=steps[table["step"][0]] if steps else None,
                    causes=causes_of([why[number]]) if number in why else (),
                    where=where.get(number),
                )
            )
        return tuple(found)

    def _figures(self, of: str, rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
        """The fields of a `CollectiveUse` for each kind, or each collective: sums over the collectives of it."""
        transfer, clocks, digests = pl.col("lasting") - pl.col("waiting"), self.joined.clocks, self.joined.job.digests
        sums = rows.group_by(of, maintain_order=True).agg(
            pl.col("waiting", "exposed").sum(),
            first=pl.col("collective").first(),
            transfer=transfer.sum(),
            usual=transfer.median(),
        )
        waited = rows.group_by(of, "rank", maintain_order=True).agg(pl.col("waiting").sum()).sort(of, "rank")
        waits = _listed(waited, of, lambda rank, ns: RankWait(rank, ns / 1e3))
        single = self.alone[rows["collective"].unique().sort()]
        sums = sums.hstack(self.alone[sums["first"]].select("talk", "group", "how"))
        sums = sums.join(
            single.group_by(of).agg(pl.col("spread").median(), count=pl.len()), on=of, maintain_order="left"
        )
        late = single.filter((pl.col("spread") > 0) & (pl.col("last_rank") >= 0))
        late = late.group_by(of, "last_rank", maintain_order=True).len()
        lates = _listed(late.sort("len", descending=True, maintain_order=True), of, RankTimes)
        widths, given = self._varying(of, rows)
        for row in sums.iter_rows(named=True):
            at, talk, ranks = row[of], self.joined.parts.talk[row["talk"]], self.joined.waits.groups[row["group"]]
            width, size = widths.get(at, talk.bytes), talk.size if talk.size is not None else len(ranks)
            kind = class_of(row["waiting"], row["transfer"])
            unsure = kind != "transfer" and row["spread"] <= (clocks.uncertainty_ns or 0.0)
            algorithm = width / row["usual"] if width is not None and row["usual"] > 0 else None
            factor = BUS_FACTORS.get(talk.collective)
            yield {
                "name": talk.collective,
                "group": talk.group,
                "ranks": ranks,
                "dtype": talk.dtype,
                "bytes": width,
                "count": row["count"],
                "transfer_us": row["transfer"] / 1e3,
                "arrival_spread_us": row["spread"] / 1e3 if clocks.known else None,
                "late_ranks": tuple(lates.get(at, ())),
                "waiting_us": tuple(waits[at]),
                "algbw_gbps": algorithm,
                "busbw_gbps": algorithm * factor(size) if algorithm and factor and size else algorithm,
                "peak_gbps": peak_gbps(digests, ranks, clocks.hosts),
                "exposed_transfer_us": row["exposed"] / 1e3,
                "kind": "inconclusive" if not clocks.known or unsure else kind,
                "matched_by": row["how"],
                "rank_bytes": given.get(at, ()),
            }

    def _varying(self, of: str, rows: pl.DataFrame) -> tuple[dict[int, int | None], dict[int, tuple[RankBytes, ...]]]:
        """Of all-to-alls the bytes of the rank with most, of several the median; and what each rank gave and took, none
        where a recording does not say."""
        talk = self.joined.parts.talk
        some = rows.filter(pl.col("talk").is_in([at for at, each in enumerate(talk) if each.collective == VARYING]))
        if not some.height:
            return {}, {}
        columns = {
            name: pl.Series([getattr(each, name) for each in talk], dtype=pl.Int64).gather(some["talk"])
            for name in ("bytes", "sent_bytes", "received_bytes")
        }
        some = some.with_columns(**columns)
        most = some.group_by(*dict.fromkeys((of, "collective")), maintain_order=True).agg(pl.col("bytes").max())
        middle = most.group_by(of).agg(
            pl.col("bytes").fill_null(0).median(), known=pl.col("bytes").first().is_not_null()
        )
        widths = {at: round(width) if known else None for at, width, known in middle.iter_rows()}
        sums = some.group_by(of, "rank").agg(
            pl.col("sent_bytes", "received_bytes").sum(),
            said=pl.all_horizontal(pl.col("sent_bytes", "received_bytes").is_not_null().all()),
        )
        said = sums.filter(pl.col("said").all().over(of)).sort(of, "rank")
        return widths, {at: tuple(each) for at, each in _listed(said.drop("said"), of, RankBytes).items()}


def _listed(table: pl.DataFrame, of: str, made: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for at, *values in table.select(of, pl.exclude(of)).iter_rows():
        found.setdefault(at, []).append(made(*values))
    return found


def _exposed(joined: Joined) -> Floats:
    """Of each part's transfer what no compute covers, in nanoseconds: where only a summary is read, by the share of the
    whole part."""
    parts = joined.waits.parts
    waiting = parts["waiting"].clip(0).to_numpy()
    exposed: Floats = ((parts["end"] - parts["start"]).to_numpy() - waiting) * bare_share(parts)
    for rank, digest in joined.digests.items():
        own = joined.rows_of(rank)
        starts, ends = (digest.collectives[column].to_numpy() for column in ("start_ns", "end_ns"))
        transfers = np.stack((starts + waiting[own], ends), axis=1)
        exposed[own] = ends - transfers[:, 0] - interval.covered_within(compute_of(digest), transfers)
    return exposed
