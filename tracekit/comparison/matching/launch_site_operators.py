"""Which eager operators does each launch site stand for?

An eager operator and a graph's nodes are the same work where module, user line and operator agree. Several in one place
are told apart by their order; equal numbers of them on both sides make the join exact, and sizes of the outputs, which
the join does not use, check it.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from tracekit.comparison.matching.launch_sites import Site
from tracekit.comparison.matching.operators import does_no_work, is_generated, kind_of_operator, plain_name
from tracekit.model.provenance import CompiledGraph, CompiledSites, EagerOps, GraphCall, GraphNode

#: What Inductor leaves to libraries, under whichever name suits it.
MULTIPLYING = ("product", "convolution")


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
#: only the module agrees a pass of the compiler has replaced the operator.
EXACTLY = attrgetter("backward", "module", "line", "operator")
STAGES = (EXACTLY, attrgetter("backward", "module", "line"), attrgetter("backward", "module", "operator"))


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
            by_key[key_of(each.place)][1].append(each)
        common = {key for key, both in by_key.items() if all(both)}
        for key in sorted(common, key=repr):
            for some, nodes, same_number in _paired(*by_key[key]):
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
        unmatched=tuple(i for i in ops if any(_is_within(eager.ops[i].module, root) for root in roots)),
        unexplained=tuple(_unexplained(compiled, {site for each in joined for site in each.sites})),
        wrong_sizes=wrong_sizes,
    )


def _is_within(module: str, root: str) -> bool:
    return module == root or module.startswith(f"{root}.")


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


def _module(node: GraphNode, graph: CompiledGraph, call: GraphCall) -> str:
    """The node's module in this call: a graph traced for one block is called for its like."""
    root, called = graph.root, call.module
    if node.module is None:
        return called or root or ""
    if root is not None and called is not None and _is_within(node.module, root):
        return called + node.module[len(root) :]
    return node.module


def _sites_of_nodes(graph: CompiledGraph) -> dict[int, tuple[int, ...]]:
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
