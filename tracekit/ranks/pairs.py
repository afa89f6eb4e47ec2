"""Which sends and receives belong together? They are no barrier: a receiver waits for its sender, nobody for others."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from tracekit.ranks.job_figures import Unmatched
from tracekit.ranks.rows import Collective, Member, Row

Place = tuple[int, int]


def join_pairs(rows: Iterable[Row], recorded: Sequence[int]) -> tuple[list[Collective], dict[Place, Unmatched]]:
    """The k-th send of one rank to another is the k-th receive there, where both recorded equally many; kernels that
    send and receive at once, to and from several, are one exchange. And the others, with the reason."""
    given: dict[Hashable, list[Place]] = defaultdict(list)
    taken: dict[Hashable, list[Place]] = defaultdict(list)
    groups: dict[Place, tuple[int, ...]] = {}
    for each in rows:
        place = each.rank, each.row
        groups[place] = each.ranks
        # A group's name is one to all its ranks; who is in it is not always known to all.
        for target in each.targets:
            given[each.group[0], each.rank, target].append(place)
        for source in each.sources:
            taken[each.group[0], source, each.rank].append(place)
    reasons: dict[Place, Unmatched] = {}
    links: dict[Place, list[Place]] = defaultdict(list)
    given_to: dict[Place, set[int]] = defaultdict(set)
    for key in {**given, **taken}:
        ends = given[key], taken[key]
        if len(ends[0]) == len(ends[1]):
            for sender, receiver in zip(*ends, strict=True):
                links[sender].append(receiver)
                links[receiver].append(sender)
                given_to[sender].add(receiver[0])
            continue
        _, source, target = key  # type: ignore[misc]
        why: Unmatched = "counts_differ" if source in recorded and target in recorded else "missing_rank"
        reasons |= dict.fromkeys((*ends[0], *ends[1]), why)
    found: list[Collective] = []
    for places in _together(groups, links):
        ranks = [rank for rank, _ in places]
        if len(places) < 2:
            reasons.setdefault(places[0], "peers_unknown")
        elif len(set(ranks)) < len(ranks):
            # One rank needs two kernels for what another does in one: that they are one exchange is not sure.
            reasons |= dict.fromkeys(places, "counts_differ")
        else:
            members = tuple(Member(*place) for place in sorted(places))
            pairs = frozenset((place[0], target) for place in places for target in given_to[place])
            found.append(Collective(members, groups[places[0]] or tuple(sorted(ranks)), "pair", pairs))
    taken_part = {(it.rank, it.row) for each in found for it in each.members}
    return found, {place: why for place, why in reasons.items() if place not in taken_part}


def _together(places: Iterable[Place], links: dict[Place, list[Place]]) -> list[list[Place]]:
    """Kernels that are linked, by way of others too."""
    seen: set[Place] = set()
    found: list[list[Place]] = []
    for first in places:
        if first in seen:
            continue
        some, open_ = [], [first]
        seen.add(first)
        while open_:
            place = open_.pop()
            some.append(place)
            for other in links[place]:
                if other not in seen:
                    seen.add(other)
                    open_.append(other)
        found.append(some)
    return found
