"""Which launch site of the generated code does each GPU activity of the compiled form come from?"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from tracekit.comparison.matching.common_subsequence import same_launches
from tracekit.comparison.matching.operators import KIND_OF_FAMILY, is_generated, plain_name
from tracekit.model.provenance import CompiledActivity, CompiledSites, LaunchSite

#: Families of kernels that prepare the next one.
PREPARING = frozenset(("memset", "memcpy", "copy"))

#: A site in one call of a graph: the call's position and the site's in the graph.
Site = tuple[int, int]


class Placed(Struct, frozen=True):
    """Activities (positions in `CompiledSites.activities`) and the sites that launched them. One site, unless it cannot
    be told which of several did; without a site the activities belong to the graph call alone (copies into a CUDA
    graph's inputs, memory set before a kernel)."""

    activities: tuple[int, ...]
    sites: tuple[Site, ...]
    exact: bool


def positions_by(things: Iterable[int | None]) -> dict[int, list[int]]:
    """Where each thing stands, in order; None is no thing."""
    found: dict[int, list[int]] = {}
    for position, thing in enumerate(things):
        if thing is not None:
            found.setdefault(thing, []).append(position)
    return found


def place(compiled: CompiledSites, families: Mapping[str, str]) -> tuple[Placed, ...]:
    """Every activity inside a graph call whose sites are known, in one `Placed`. `families` are kernels', by name."""
    inside = positions_by(activity.call for activity in compiled.activities)
    found: list[Placed] = []
    for call, positions in inside.items():
        graph = compiled.calls[call].graph if call < len(compiled.calls) else None
        if graph is not None and compiled.graphs[graph].sites:
            own = [compiled.activities[i] for i in positions]
            found += _Call(call, compiled.graphs[graph].sites, positions, own, families).placed()
    return tuple(found)


class _Call(Struct, frozen=True):
    """One call of a graph: its sites and its activities (at these positions of all), both in order."""

    call: int
    sites: Sequence[LaunchSite]
    positions: Sequence[int]
    activities: Sequence[CompiledActivity]
    families: Mapping[str, str]

    def placed(self) -> Iterator[Placed]:
        """Generated kernels are placed by name and order; library calls take what lies between two of them."""
        names = {each.name for each in self.activities}
        kernels = {site.kernel for site in self.sites}
        sites = [i for i, site in enumerate(self.sites) if site.kernel in names or is_generated(site.kernel)]
        activities = [i for i, each in enumerate(self.activities) if each.name in kernels or is_generated(each.name)]
        pairs = same_launches([self.sites[i].kernel for i in sites], [self.activities[i].name for i in activities])
        site_from, activity_from = 0, 0
        for i, j in pairs:
            site, activity = sites[i], activities[j]
            yield from self._between(range(site_from, site), range(activity_from, activity))
            yield self._placed([activity], [site], exact=True)
            site_from, activity_from = site + 1, activity + 1
        yield from self._between(range(site_from, len(self.sites)), range(activity_from, len(self.activities)))

    def _between(self, sites: Sequence[int], activities: Sequence[int]) -> Iterator[Placed]:
        """Library calls and what they launched, between two generated kernels."""
        # A generated kernel in between has lost its partner: nothing is launched by another's site.
        sites = [i for i in sites if not is_generated(self.sites[i].kernel)]
        yield from (self._placed([i], (), exact=False) for i in activities if is_generated(self.activities[i].name))
        activities = [i for i in activities if not is_generated(self.activities[i].name)]
        replayed = [i for i in activities if self.activities[i].ordinal is None]
        recorded = [i for i in activities if self.activities[i].ordinal is not None]
        left = yield from self._by_operator(sites, recorded, beside_a_replay=bool(replayed))
        if replayed:
            yield from self._by_family(left, replayed)

    def _by_operator(
        self, sites: Sequence[int], activities: Sequence[int], *, beside_a_replay: bool
    ) -> Generator[Placed, None, list[int]]:
        """Each operator that the call ran is one site's; returns the sites that none was found for."""
        runs = [list(run) for _, run in groupby(activities, key=lambda i: self.activities[i].ordinal)]
        operators = [plain_name(self.activities[run[0]].operator or "") for run in runs]
        pairs = {j: i for i, j in same_launches([plain_name(self.sites[i].kernel) for i in sites], operators)}
        left = [site for k, site in enumerate(sites) if k not in pairs.values()]
        for j, run in enumerate(runs):
            if j in pairs:
                yield self._placed(run, [sites[pairs[j]]], exact=True)
            elif beside_a_replay:
                # Copies into the graph's own memory: what the sites launch is in the replay.
                yield self._placed(run, (), exact=True)
            else:
                yield self._placed(run, left, exact=not left)
        return left

    def _by_family(self, sites: Sequence[int], activities: Sequence[int]) -> Iterator[Placed]:
        """Without operators (a CUDA graph's replay): each library call launches one kernel that does the work."""
        main = [k for k, i in enumerate(activities) if self.families.get(self.activities[i].name) in KIND_OF_FAMILY]
        if len(sites) <= 1 or len(main) != len(sites):
            yield self._placed(activities, sites, exact=len(sites) <= 1)
            return
        owners: list[list[int]] = [[] for _ in sites]
        for k, i in enumerate(activities):
            before = sum(at < k for at in main)
            prepares = self.families.get(self.activities[i].name) in PREPARING
            owners[min(before if k in main or prepares else max(before - 1, 0), len(sites) - 1)].append(i)
        for site, own in zip(sites, owners, strict=True):
            yield self._placed(own, [site], exact=True)

    def _placed(self, activities: Sequence[int], sites: Sequence[int], *, exact: bool) -> Placed:
        return Placed(tuple(self.positions[i] for i in activities), tuple((self.call, site) for site in sites), exact)
