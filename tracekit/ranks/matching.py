"""Which communication kernels of several ranks are one collective?

The surest way first: the number in its group's sequence; the ends of sends and receives; equal signatures, the k-th of
each, where all ranks have equally many; the order of kernels of one name, likewise. Where counts differ order tells
nothing: then the ends must agree. What was joined is checked: nobody is done before those have come that it takes
something from, and all leave a barrier together.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain

from msgspec import Struct

from tracekit.interval import Ints
from tracekit.ranks.clocks import Clocks, one_clock
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.ends import Places, Times, join_by_ends, recorded_of, split_by_ends
from tracekit.ranks.job_figures import MatchedBy, Unmatched
from tracekit.ranks.pairs import join_pairs
from tracekit.ranks.rows import Collective, Member, Row, joined, list_rows, times_of

#: What is joined in other ways, or in none.
APART = ("pairs", "unknown", "one_sided")


class Matching(Struct, frozen=True):
    """All collectives that were joined, and of each rank the rows that were not, with the reason."""

    collectives: tuple[Collective, ...]
    unmatched: dict[int, dict[int, Unmatched]]


def named_collectives(digests: dict[int, RankDigest]) -> list[Collective]:
    """What names alone join, unchecked."""
    starts, ends = (times_of(digests, one_clock(digests), column) for column in ("start_ns", "end_ns"))
    every, recorded = list_rows(digests), sorted(digests)
    rows = [each for each in every if each.exchange not in APART]
    pairs, _ = join_pairs((each for each in every if each.exchange == "pairs"), recorded)
    return [*_by_names(rows, recorded, starts, ends, _places(digests)).found, *pairs]


def match_collectives(digests: dict[int, RankDigest], clocks: Clocks) -> Matching:
    """The collectives of all ranks that were recorded; `clocks` puts their times side by side."""
    recorded = sorted(digests)
    starts, ends = (times_of(digests, clocks, column) for column in ("start_ns", "end_ns"))
    times = Times(starts, ends, clocks)
    unmatched: dict[int, dict[int, Unmatched]] = {rank: {} for rank in recorded}
    by_way: dict[str, list[Row]] = defaultdict(list)
    for each in list_rows(digests):
        by_way[each.exchange if each.exchange in APART else "all"].append(each)
    for each in by_way["unknown"]:
        unmatched[each.rank][each.row] = "peers_unknown"
    for each in by_way["one_sided"]:
        unmatched[each.rank][each.row] = "one_sided"
    pairs, alone = join_pairs(by_way["pairs"], recorded)
    for place, reason in alone.items():
        unmatched[place[0]][place[1]] = reason
    named = _by_names(by_way["all"], recorded, starts, ends, _places(digests))
    for it in named.of_several_groups:
        unmatched[it.rank][it.row] = "group_unknown"
    left = named.left
    rows = {(each.rank, each.row): each for each in by_way["all"]}
    why_left: dict[Row, Unmatched] = {}
    sound: list[Collective] = []
    # With nobody else to communicate with.
    of_two = len(recorded) == 2 and all(each.world_size == 2 for each in digests.values())
    for one in (*named.found, *pairs):
        why = _unsound(one, times, of_two=of_two)
        if why is None:
            sound.append(one)
            continue
        for it in one.members:
            row = rows.get((it.rank, it.row))
            unmatched[it.rank][it.row] = why
            # Order was wrong about it; its end may tell.
            if row is not None and why != "missing_rank" and one.matched_by in ("signature", "order"):
                left.append(row)
                why_left[row] = why
    sound, alone_rows = join_by_ends(sound, left, recorded, times)
    for each in left:
        unmatched[each.rank].pop(each.row, None)
    for each, others in alone_rows:
        unmatched[each.rank][each.row] = why_left.get(each, "counts_differ" if others else "missing_rank")
    first = {id(each): min(int(starts[it.rank][it.row]) for it in each.members) for each in sound}
    return Matching(tuple(sorted(sound, key=lambda each: first[id(each)])), unmatched)


def _unsound(each: Collective, times: Times, *, of_two: bool) -> Unmatched | None:
    """Why it cannot be one collective, or tells nothing; None for a sound one. A job `of_two` ranks has one group."""
    ranks = {it.rank for it in each.members}
    if len(ranks) < 2 or (each.flow is not None and not any(a in ranks and b in ranks for a, b in each.flow)):
        return "ends_disagree" if each.matched_by == "order" and len(each.group) > len(ranks) else "missing_rank"
    if not times.clocks.known:
        # Durations are compared, which says nothing of who came when: not all that is joined waits for the last.
        return None if each.flow is None else "clocks_unknown"
    if times.impossible(each):
        return "not_at_once"
    # A number in the sequence is sure, however far apart its ends; so is a place among equally many of one group where
    # nothing that was joined so ended before it had begun elsewhere. Processes that share a GPU take turns, and their
    # kernels end as far apart as these are long.
    by_place = each.matched_by == "signature" or (each.matched_by == "order" and of_two)
    sure = each.matched_by == "sequence" or (by_place and times.clocks.at_once)
    return "ends_disagree" if not sure and times.disagree(each) else None


class _Named(Struct, frozen=True):
    """What names alone join, unchecked; what they leave over because counts differ; and kernels of groups that share a
    name, or state none, of which nobody knows whose they are."""

    found: list[Collective]
    left: list[Row]
    of_several_groups: list[Row | Member]


def _by_names(
    rows: Iterable[Row], recorded: Sequence[int], starts: dict[int, Ints], ends: dict[int, Ints], places: Places
) -> _Named:
    named = _Named([], [], [])
    kinds: dict[Hashable, list[Row]] = defaultdict(list)
    for each in rows:
        kinds[(each.group, each.signature, each.sequence is not None)].append(each)
    for some in kinds.values():
        ranks, known = recorded_of(some, recorded), some[0].group[0] is not None
        if known and some[0].sequence is not None and len(ranks) <= (some[0].size or len(ranks)):
            by_key: dict[Hashable, list[Row]] = defaultdict(list)
            for each in some:
                by_key[each.sequence].append(each)
            for same in by_key.values():
                # A number twice on one rank is of two kernels of one call: the k-th of each.
                named.found.extend(_by_occurrence(same, ranks, "sequence", named.left))
            continue
        together = _by_occurrence(some, ranks, "signature" if known else "order", named.left)
        if together and not some[0].ranks:
            together, unknown = split_by_ends(together, starts, ends, places)
            named.of_several_groups.extend(unknown)
        if any(len(each.members) > (some[0].size or len(ranks)) for each in together):
            named.of_several_groups.extend(some)
        else:
            named.found.extend(together)
    return named


def _places(digests: dict[int, RankDigest]) -> Places:
    groups = {ranks for digest in digests.values() for ranks in digest.groups.values() if len(ranks) > 1}
    by_size: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for ranks in sorted(groups):
        by_size[len(ranks)].append(ranks)
    apart = [tuple(some) for some in by_size.values() if len(set(chain(*some))) == sum(map(len, some))]
    hosts = {digest.host_name for digest in digests.values()}
    return Places(tuple(each for each in apart if len(each) > 1), len(hosts) == 1 and None not in hosts)


def _by_occurrence(rows: Sequence[Row], ranks: tuple[int, ...], how: MatchedBy, left: list[Row]) -> list[Collective]:
    """The k-th of each rank together, of those ranks that have as many as most; the others' are left over. Where no two
    ranks have equally many all are."""
    counts = Counter(each.rank for each in rows)
    usual, having = Counter(counts[rank] for rank in ranks).most_common(1)[0] if ranks else (0, 0)
    alike = tuple(rank for rank in ranks if counts[rank] == usual)
    left += [each for each in rows if each.rank not in alike]
    if not usual or (having < len(ranks) and having < 2):
        left += [each for each in rows if each.rank in alike]
        return []
    of_rank: dict[int, list[Row]] = defaultdict(list)
    for each in rows:
        of_rank[each.rank].append(each)
    group = rows[0].ranks or ranks
    together = zip(*(of_rank[rank] for rank in alike), strict=True)
    return [joined(same, group, how) for same in together]
