"""Which launch site of the generated code does each GPU activity of the compiled form come from, and which eager
operators does each site stand for?

An eager operator and a graph's nodes are the same work where module, user line and operator agree. Several in one place
are told apart by their order; equal numbers of them on both sides make the join exact, and sizes of the outputs, which
the join does not use, check it.
"""

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from tracekit.comparison.matching.common_subsequence import same_launches
from tracekit.comparison.matching.operators import (
    KIND_OF_FAMILY,
    does_no_work,
    is_generated,
    kind_of_operator,
)
from tracekit.comparison.modules import is_within
from tracekit.model import provenance
from tracekit.model.provenance import CompiledSites, EagerOps, GraphNode
from tracekit.names import plain_name

#: Families of kernels that prepare the next one.
PREPARING = frozenset(("memset", "memcpy", "copy"))

#: A site in one call of a graph: the call's position and the site's in the graph.
Site = tuple[int, int]
#: What Inductor leaves to libraries, under whichever name suits it.
MULTIPLYING = ("product", "convolution")


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
    sites: Sequence[provenance.LaunchSite]
    positions: Sequence[int]
    activities: Sequence[provenance.CompiledActivity]
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


class Joined(Struct, frozen=True):
    """An eager operator (a position in `EagerOps.ops`) and the sites that do its work: none where its nodes needed no
    launch of their own. `exact` where the numbers on both sides are equal and the sizes agree."""

    op: int
    sites: tuple[Site, ...]
    exact: bool


class Unexplained(Struct, frozen=True):
    """A site that no eager operator was found for, with the modules and lines its nodes stand in: work that is done
    otherwise under the compiler. None where Inductor tells nothing of the site."""

    site: Site
    modules: tuple[str, ...] | None
    lines: tuple[str, ...]


class Join(Struct, frozen=True):
    """`joined` are the operators that nodes were found for; `unmatched` those inside compiled modules without any.
    `unexplained` are the sites without operators. `wrong_sizes` counts the pairs whose sizes differ."""

    joined: tuple[Joined, ...]
    unmatched: tuple[int, ...]
    unexplained: tuple[Unexplained, ...]
    wrong_sizes: int


class _Place(NamedTuple):
    backward: bool
    module: str
    line: str | None
    operator: str


class _Work(Struct, frozen=True):
    """A node in one call of its graph."""

    call: int
    node: GraphNode
    place: _Place
    sites: tuple[int, ...]


Key = tuple[object, ...]

#: By what an operator and a node are recognised: the first way that both sides have in common. Where only the line or
#: only the module agrees a pass of the compiler has replaced the operator. A node without a line goes by its module.
EXACTLY = attrgetter("backward", "module", "line", "operator")
STAGES = (
    EXACTLY,
    attrgetter("backward", "module", "line"),
    attrgetter("backward", "module", "operator"),
    attrgetter("backward", "module"),
)
BY_MODULE = STAGES[-1]


def join_operators(eager: EagerOps, compiled: CompiledSites) -> Join:
    """Every eager operator that does work inside compiled modules, with its sites."""
    places = [_Place(op.backward, op.module, op.line, plain_name(op.name)) for op in eager.ops]
    ops = [i for i, op in enumerate(eager.ops) if not does_no_work(op.name)]
    work: list[_Work] = []
    owners = [_sites_of_nodes(graph) for graph in compiled.graphs]
    for number, call in enumerate(compiled.calls):
        if call.graph is not None:
            graph = compiled.graphs[call.graph]
            for i, own in owners[call.graph].items():
                node = graph.nodes[i]
                operator = plain_name(node.op or node.target)
                place = _Place(graph.is_backward, _module(node, graph, call), node.line, operator)
                work.append(_Work(number, node, place, own))
    joined: list[Joined] = []
    wrong_sizes = 0
    for key_of in STAGES:
        by_key: dict[Key, tuple[list[int], list[_Work]]] = defaultdict(lambda: ([], []))
        for i in ops:
            by_key[key_of(places[i])][0].append(i)
        for each in work:
            if key_of is not BY_MODULE or each.place.line is None:
                by_key[key_of(each.place)][1].append(each)
        common = {key: both for key, both in by_key.items() if all(both)}
        for both in common.values():
            for some, nodes, same_number in _paired(*both):
                exact = same_number and key_of is EXACTLY
                sites = tuple(dict.fromkeys((each.call, site) for each in nodes for site in each.sites))
                made = {output.numel() for each in nodes for output in each.node.outputs}
                for i in some:
                    # Whether an output of the operator is as large as one of the nodes'; unknown sizes agree with any.
                    wanted = {output.numel() for output in eager.ops[i].outputs}
                    fits = not wanted or not made or None in made or not wanted.isdisjoint(made)
                    wrong_sizes += exact and not fits
                    joined.append(Joined(i, sites, exact and fits))
        ops = [i for i in ops if key_of(places[i]) not in common]
        work = [each for each in work if key_of(each.place) not in common]
    roots = {call.module for call in compiled.calls if call.module}
    return Join(
        joined=tuple(sorted(joined, key=lambda each: each.op)),
        unmatched=tuple(i for i in ops if any(is_within(eager.ops[i].module, root) for root in roots)),
        unexplained=tuple(_unexplained(compiled, {site for each in joined for site in each.sites})),
        wrong_sizes=wrong_sizes,
    )


def _paired(ops: list[int], work: list[_Work]) -> Iterator[tuple[list[int], list[_Work], bool]]:
    """Operators and the nodes that are theirs, and whether the numbers agreed."""
    work = sorted(work, key=lambda each: (each.call, each.node.order))
    # Nodes of one line's operator call, or each node by itself where one call made several equal operators.
    calls = [list(some) for _, some in groupby(work, key=lambda each: (each.call, each.node.order))]
    for parts in (calls, [[each] for each in work]):
        if len(parts) == len(ops):
            yield from (([op], part, True) for op, part in zip(ops, parts, strict=True))
            return
    by_graph_call = [list(some) for _, some in groupby(work, key=lambda each: each.call)]
    if len(by_graph_call) > 1 and len(ops) % len(by_graph_call) == 0:
        share = len(ops) // len(by_graph_call)
        for k, part in enumerate(by_graph_call):
            yield from _paired(ops[k * share : (k + 1) * share], part)
        return
    yield ops, work, False


def _is_view(node: GraphNode) -> bool:
    """Also picking one of several results is no work."""
    return does_no_work(node.op or node.target) or "getitem" in node.target


def _module(node: GraphNode, graph: provenance.CompiledGraph, call: provenance.GraphCall) -> str:
    """The node's module in this call: a graph traced for one block is called for its like."""
    root, called = graph.root, call.module
    if node.module is None:
        return called or root or ""
    if root is not None and called is not None and is_within(node.module, root):
        return called + node.module[len(root) :]
    return node.module


def _sites_of_nodes(graph: provenance.CompiledGraph) -> dict[int, tuple[int, ...]]:
    """Every node that does work, in order, and the sites that do it; none where it needed no launch.

    Of a node in several kernels only one counts: of library calls the first, then the generated kernel with the fewest
    nodes. Inductor lists for some kernels whatever their inputs come from, and what a kernel is there for is in a short
    list. A site that would be left with nothing is a part of its first node's work, of those that no library does: one
    of several kernels with the same list, a copy into the layout that a convolution wants, or one that a view has
    become.
    """
    owners: dict[int, list[int]] = {i: [] for i, node in enumerate(graph.nodes) if not _is_view(node)}
    listed: list[tuple[int, ...]] = []
    for site in graph.sites:
        nodes = site.nodes or ()
        if site.kernel.startswith(("extern_kernels.", "torch.ops.")):
            # Library calls list the nodes of their inputs too, which are left out.
            names = {i: plain_name(graph.nodes[i].target) for i in nodes}
            named = tuple(i for i in nodes if names[i] == plain_name(site.kernel))
            nodes = named or tuple(i for i in nodes if kind_of_operator(names[i]) in MULTIPLYING) or nodes
        listed.append(nodes)
    works = [[i for i in nodes if not _is_view(graph.nodes[i])] for nodes in listed]
    generated = [is_generated(site.kernel) for site in graph.sites]
    for at in sorted(range(len(graph.sites)), key=lambda i: (generated[i], generated[i] * len(works[i]), i)):
        work = works[at]
        if generated[at]:
            work = [i for i in work if all(generated[owner] for owner in owners[i])] or work
        free = [i for i in work if not owners[i]]
        for i in free or work[:1] or listed[at][:1]:
            owners.setdefault(i, []).append(at)
    return {i: tuple(sites) for i, sites in sorted(owners.items())}


def _unexplained(compiled: CompiledSites, known: set[Site]) -> Iterator[Unexplained]:
    for number, call in enumerate(compiled.calls):
        if call.graph is None:
            continue
        graph = compiled.graphs[call.graph]
        for i, site in enumerate(graph.sites):
            if (number, i) in known:
                continue
            nodes = [graph.nodes[node] for node in site.nodes or ()]
            modules = dict.fromkeys(_module(node, graph, call) for node in nodes)
            lines = dict.fromkeys(node.line for node in nodes if node.line)
            yield Unexplained((number, i), None if site.nodes is None else tuple(modules), tuple(lines))
