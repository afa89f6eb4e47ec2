"""Which ranks of a group communicate more or less often than the others, or in another order?

In recordings of as many steps, which end on all ranks before the next one begins: a rank with another program, such as
one that was compiled otherwise, makes the others wait, or takes what they did not mean for it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import median_low

from tracekit.ranks.compared.nouns import UnevenCollectives
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.fleets.parts import OF_ALL

#: What a collective was, in the order in which the group's were issued: its name and its bytes.
Issued = tuple[str, int | None]


def find_uneven_collectives(digests: Sequence[RankDigest]) -> tuple[UnevenCollectives, ...]:
    """Those of all groups; none where a recording does not say what a collective was."""
    issued: dict[tuple[int, ...], dict[int, list[tuple[int | None, Issued]]]] = defaultdict(dict)
    recorded = {each.rank for each in digests if each.rank is not None}
    for digest in digests:
        assert digest.rank is not None
        for row in digest.collectives.iter_rows(named=True):
            if row["exchange"] not in OF_ALL or not row["ranks"]:
                continue
            of_group = issued[tuple(row["ranks"])]
            for rank in recorded & {*row["ranks"]}:
                of_group.setdefault(rank, [])
            of_group[digest.rank].append((row["sequence"], (row["collective"], row["bytes"])))
    return tuple(found for of_group in issued.values() for found in _of_group(of_group))


def _of_group(issued: dict[int, list[tuple[int | None, Issued]]]) -> Iterator[UnevenCollectives]:
    counts = {rank: Counter(name for _, (name, _) in some) for rank, some in issued.items()}
    uneven = False
    for name in sorted({name for count in counts.values() for name in count}):
        usual = median_low(count[name] for count in counts.values())
        for rank, count in sorted(counts.items()):
            if count[name] != usual:
                uneven = True
                yield UnevenCollectives(rank, name, count[name], usual)
    # Kernels of several streams may start in any order: only the group's own numbers tell.
    if uneven or any(sequence is None for some in issued.values() for sequence, _ in some):
        return
    orders = {rank: [each for _, each in sorted(some)] for rank, some in sorted(issued.items())}
    first, *others = orders
    for rank in others:
        for own, usual_one in zip(orders[rank], orders[first], strict=True):
            if own != usual_one:
                yield UnevenCollectives(rank, own[0], counts[rank][own[0]], counts[first][own[0]], usual_one[0])
                break
