"""In which collectives, one by one, did ranks wait most, and why was the last rank late there?"""

from collections.abc import Iterable

import numpy as np

from tracekit.model.ranks import RankDigest, RankWait, SingleCollective
from tracekit.ranks.clocks import Clocks
from tracekit.ranks.lateness import Lateness, causes_of, places_of
from tracekit.ranks.matching import Matching, times_of
from tracekit.ranks.waiting import Waits

#: So many are told one by one.
MOST = 20


def first_moment(digests: dict[int, RankDigest], clocks: Clocks) -> int:
    """When the first window of any rank begins, on the common clock."""
    return min(
        int(clocks.common(rank, np.array([each.windows[0][0]], dtype=np.int64))[0]) for rank, each in digests.items()
    )


def list_worst(
    digests: dict[int, RankDigest], matching: Matching, waits: Waits, clocks: Clocks, late: Iterable[Lateness]
) -> tuple[SingleCollective, ...]:
    """Those that ranks waited in most, all together, the worst first."""
    starts, ends = (times_of(digests, clocks, column) for column in ("start_ns", "end_ns"))
    why = {each.collective: each for each in late}
    waited = [sum(int(waits.waiting_ns[it.rank][it.row]) for it in each.members) for each in matching.collectives]
    begin = first_moment(digests, clocks)
    found = []
    for k in sorted((k for k, ns in enumerate(waited) if ns > 0), key=lambda k: (-waited[k], k))[:MOST]:
        each = matching.collectives[k]
        lasting = sum(int(ends[it.rank][it.row] - starts[it.rank][it.row]) for it in each.members)
        first = each.members[0]
        told = digests[first.rank].collectives.row(first.row, named=True)
        places = places_of(digests, [why[k]]) if k in why else ()
        found.append(
            SingleCollective(
                number=k + 1,
                name=told["collective"],
                group=told["group"],
                ranks=each.group,
                dtype=told["dtype"],
                bytes=told["bytes"],
                step=told["step"],
                start_us=(min(int(starts[it.rank][it.row]) for it in each.members) - begin) / 1e3,
                last=waits.last[k],
                arrival_spread_us=waits.spread_ns[k] / 1e3 if clocks.known else None,
                transfer_us=(lasting - waited[k]) / 1e3,
                waiting_us=tuple(
                    RankWait(it.rank, int(waits.waiting_ns[it.rank][it.row]) / 1e3) for it in each.members
                ),
                causes=causes_of([why[k]]) if k in why else (),
                where=places[0] if places else None,
                matched_by=each.matched_by,
            )
        )
    return tuple(found)
