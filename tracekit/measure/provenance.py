"""Which eager operators does each launch of compiled code stand for? Asked of Inductor while it compiles.

The only file that uses Inductor's private provenance. Known in torch 2.9 to 2.15; `missing_provenance` looks for every
name that is used here and says what is not there.

Inductor's caches know neither lines nor modules, and before 2.13 not even whether provenance was on: equal graphs would
get the lines of whichever was compiled first. So each graph is compiled under a cache tag of its own lines and modules.
What a later process finds in the cache then is of the same lines, and carries its provenance with it.
"""

import hashlib
import inspect
import itertools
import json
import sys
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from typing import Any

import torch
from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.measure.compilation import inductor_config
from tracekit.measure.compiled_graph import (
    describe_node,
    graph_nodes,
    launch_sites,
    line_of,
    module_of,
    triton_sources,
)
from tracekit.measure.source_location import ModuleNames
from tracekit.model.note import Noted
from tracekit.model.provenance import (
    PROVENANCE_VERSION,
    CompiledGraph,
    CompiledSites,
    GraphCall,
    KernelSources,
    WithoutSites,
)
from tracekit.statements import noted as notes

#: Of what is stored in Inductor's cache beside a graph.
CACHE_TAG = "tracekit-provenance-1"
#: What is stored there, as an attribute of the compiled graph: one JSON text, because it is pickled.
KEPT = "_tracekit_provenance"
#: A graph's first arguments of construction, of which the third is read.
CONSTRUCTION = ["self", "current_callable", "graph", "gm"]
#: What is used of torch, and of its class of compiled graphs: a method that is inherited would not be replaced for this
#: class alone.
NAMES = (
    ("_inductor.config.trace", "provenance_tracking_level"),
    ("_inductor.debug", "_inductor_triton_kernel_to_post_grad_node_info"),
    ("compiler.config", "cache_key_tag"),
    ("_dynamo.convert_frame", "compile_lock"),
    ("_inductor.compile_fx", "compile_fx"),
    ("_inductor.compile_fx", "_compile_fx_inner"),
)
#: Characters of source that are kept of one kernel, and of all; a large model's have 0.4 million.
LONGEST_SOURCE = 200_000
MOST_SOURCE = 4_000_000
METHODS = ("__init__", "__call__", "post_compile")
GRAPH_FIELDS = ("source_code", "inductor_provenance_mapping_str", "_fx_graph_cache_key")

#: What of torch's is called, where something else is put in its place.
Real = Callable[..., Any]


def missing_provenance() -> Noted | None:
    """What this torch lacks for provenance; None when everything is there."""
    installed = str(torch.__version__)
    try:
        # With the other modules that are named above.
        from torch._inductor import compile_fx  # noqa: F401
        from torch._inductor.output_code import CompiledFxGraph

        absent = [f"torch.{owner}.{name}" for owner, name in NAMES if not hasattr(attrgetter(owner)(torch), name)]
    except (ImportError, AttributeError) as error:
        # The message ends with a path in parentheses.
        return notes.TorchImportFailed(installed, str(error).partition(" (")[0])
    there = {*vars(CompiledFxGraph), *getattr(CompiledFxGraph, "__dataclass_fields__", ())}
    absent += [f"CompiledFxGraph.{name}" for name in (*METHODS, *GRAPH_FIELDS) if name not in there]
    if absent:
        return notes.TorchLacks(installed, tuple(absent))
    first = list(inspect.signature(CompiledFxGraph.__init__).parameters)[: len(CONSTRUCTION)]
    if first != CONSTRUCTION:
        return notes.TorchMakesGraphsOtherwise(installed, tuple(first), tuple(CONSTRUCTION))
    return None


class _Collected(Struct, frozen=True):
    """A graph as a noun, the number that a forward graph and its backward graph have in common (Dynamo's), and the
    graph itself for as long as torch keeps it."""

    graph: weakref.ref[Any]
    described: CompiledGraph
    number: Any


class Collection(Struct):
    """What Inductor compiled while it was watched. `graphs` and `roots` are empty once watching is over: no graph is
    kept alive for having been watched."""

    names: ModuleNames
    graphs: list[Any] = field(default_factory=list)
    roots: dict[int, str | None] = field(default_factory=dict)
    problems: list[Noted] = field(default_factory=list)
    _collected: tuple[_Collected, ...] = ()
    _sources: list[tuple[str, str]] = field(default_factory=list)
    _named: list[weakref.ref[Any]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def compile_under_own_tag(self, real: Real, graph_module: Any, *arguments: Any, **options: Any) -> Any:
        """Compiles under a cache tag of the graph's own lines and modules. What is no graph has none."""
        from torch._dynamo.convert_frame import compile_lock

        try:
            found = hashlib.sha256()
            for node in getattr(getattr(graph_module, "graph", None), "nodes", ()):
                found.update(repr((node.name, module_of(node.meta, self.names), line_of(node.meta))).encode())
            digest = found.hexdigest()[:16]
        except Exception as error:  # noqa: BLE001 (no compilation may fail for being asked about)
            self.unreadable("a graph", error)
            # Found in no cache, and of no use in any.
            digest = uuid.uuid4().hex
        # Autograd compiles on a thread of its own, which may not know what was set on this one.
        with compile_lock, _settings(f"{CACHE_TAG}/{digest}"):
            return real(graph_module, *arguments, **options)

    def keep_nodes(
        self, real: Real, graph: Any, current_callable: Any, lowering: Any, gm: Any, *arguments: Any, **options: Any
    ) -> None:
        """Constructs a graph, and keeps what is told nowhere else with it. The cache brings it back."""
        real(graph, current_callable, lowering, gm, *arguments, **options)
        from torch._inductor import debug

        try:
            nodes = (node for node in gm.graph.nodes if node.op == "call_function")
            kept = {
                "nodes": [describe_node(node, self.names) for node in nodes],
                # Filled for backward graphs too, whose mapping in the compiled graph is empty.
                "kernels": debug._inductor_triton_kernel_to_post_grad_node_info,
                # The lines as Dynamo traced them, in order.
                "lines": list(getattr(debug, "_inductor_pre_grad_node_stack_trace", ())),
            }
            setattr(graph, KEPT, json.dumps(kept, default=list))
        except Exception as error:  # noqa: BLE001 (no compilation may fail for being asked about)
            self.unreadable("a graph's nodes", error)

    def note_graph(self, real: Real, graph: Any, *arguments: Any, **options: Any) -> Any:
        self.graphs.append(graph)
        return real(graph, *arguments, **options)

    def note_first_call(self, real: Real, graph: Any, *arguments: Any) -> Any:
        """The first call of a graph is for the module it was traced for. A graph without a name gets one: recordings
        call it by its cache key, and without a cache it has none."""
        if id(graph) not in self.roots:
            self.roots[id(graph)] = self.names.innermost(sys._getframe(1))
            if graph._fx_graph_cache_key is None:
                graph._fx_graph_cache_key = f"tracekit{next(self._numbers)}"
                self._named.append(weakref.ref(graph))
        return real(graph, *arguments)

    def close(self) -> None:
        """Watching is over: what is to be told of the graphs is kept, the graphs are not."""
        try:
            self._collected = tuple(_describe(graph, self.roots.get(id(graph))) for graph in self.graphs)
            self._sources = [each for graph in self.graphs for each in triton_sources(graph.source_code or "")]
        except Exception as error:  # noqa: BLE001 (what was measured is not lost for it)
            self.unreadable("the compiled graphs", error)
        for graph in self.graphs:
            vars(graph).pop(KEPT, None)
        self.graphs.clear()
        self.roots.clear()

    def unreadable(self, what: str, error: Exception) -> None:
        self.problems.append(notes.ProvenanceUnreadable(what, f"{type(error).__name__}: {error}"))

    def release(self) -> None:
        """Takes the given names back, when nothing more is recorded."""
        for reference in self._named:
            if (graph := reference()) is not None:
                graph._fx_graph_cache_key = None
        self._named.clear()

    def sites(self, made: list[tuple[int, str | None]]) -> CompiledSites:
        """The graphs as they are stored, with the calls that `watched_calls` tells. Backward graphs are called by
        autograd, for the modules of their forward graphs, the last first."""
        forward_of = self._forward_graphs()
        alive = ((i, each.graph()) for i, each in enumerate(self._collected))
        position = {id(graph): i for i, graph in alive if graph is not None}
        calls = [GraphCall(position.get(graph), module) for graph, module in made]
        for backward, forward in forward_of.items():
            modules = [call.module for call in calls if call.graph == forward]
            own = [i for i, call in enumerate(calls) if call.graph == backward]
            if len(own) == len(modules):
                for i, module in zip(reversed(own), modules, strict=True):
                    calls[i] = GraphCall(backward, module)
        every = [each.described for each in self._collected]
        graphs = tuple(replace(graph, root=every[forward_of.get(i, i)].root) for i, graph in enumerate(every))
        without = (notes.GraphWithoutSites(i, graph.without) for i, graph in enumerate(graphs) if graph.without)
        noted = (*self.problems, *without)
        return CompiledSites(PROVENANCE_VERSION, str(torch.__version__), graphs, tuple(calls), noted=noted)

    def kernel_sources(self) -> KernelSources:
        """The source of each Triton kernel of these graphs, once, in the order in which they were compiled."""
        found: dict[str, tuple[str, ...]] = {}
        room, left_out = MOST_SOURCE, 0
        for name, source in dict.fromkeys(self._sources):
            if len(source) > min(LONGEST_SOURCE, room):
                left_out += 1
                continue
            room -= len(source)
            found[name] = (*found.get(name, ()), source)
        return KernelSources(PROVENANCE_VERSION, str(torch.__version__), found, left_out)

    def _forward_graphs(self) -> dict[int, int]:
        """For each backward graph the forward one it belongs to: that of its number or, from a cache that has no
        numbers, the last one that has no backward graph yet."""
        found: dict[int, int] = {}
        every = self._collected
        for i, graph in enumerate(every):
            if not graph.described.is_backward:
                continue
            free = [j for j in range(i) if not every[j].described.is_backward and j not in found.values()]
            if free:
                found[i] = max(free, key=lambda j: (every[j].number == graph.number, j))
        return found


def _describe(graph: Any, root: str | None) -> _Collected:
    options = getattr(graph, "fx_kwargs", None) or {}
    key, is_backward = str(graph._fx_graph_cache_key), bool(options.get("is_backward"))
    kept = getattr(graph, KEPT, None)
    if kept is None:
        described = CompiledGraph(key, is_backward, root, (), (), "cached_without_provenance")
    else:
        found = json.loads(kept)
        mapping = json.loads(graph.inductor_provenance_mapping_str or "{}")
        nodes = graph_nodes(found["nodes"], mapping.get("postToPre", {}), found["lines"])
        kernels: dict[str, list[str]] = mapping.get("cppCodeToPost") or found["kernels"]
        sites = launch_sites(getattr(graph, "source_code", None) or "", kernels, nodes)
        without: WithoutSites | None = None if sites or not kernels else "no_launches_marked"
        described = CompiledGraph(key, is_backward, root, nodes, sites, without)
    return _Collected(weakref.ref(graph), described, options.get("graph_id"))


@contextmanager
def collected(names: ModuleNames) -> Iterator[Collection]:
    """Everything compiled inside, read from the cache or not, comes with its provenance. Nothing of it remains in torch
    when the block ends, but names of graphs that have none, until `Collection.release`: generated code is the same but
    for comments. Only where `missing_provenance` finds nothing."""
    from torch._inductor import compile_fx
    from torch._inductor.output_code import CompiledFxGraph

    collection = Collection(names)
    with ExitStack() as patches:
        patches.enter_context(_settings(CACHE_TAG))
        for owner, name, instead in (
            (compile_fx, "compile_fx", collection.compile_under_own_tag),
            (compile_fx, "_compile_fx_inner", collection.compile_under_own_tag),
            (CompiledFxGraph, "__init__", collection.keep_nodes),
            (CompiledFxGraph, "post_compile", collection.note_graph),
            (CompiledFxGraph, "__call__", collection.note_first_call),
        ):
            patches.enter_context(_replaced(owner, name, instead))
        yield collection
    collection.close()


@contextmanager
def watched_calls(names: ModuleNames) -> Iterator[list[tuple[int, str | None]]]:
    """The calls of compiled graphs inside, in order: the graph's identity and the module it is called for."""
    from torch._inductor.output_code import CompiledFxGraph

    made: list[tuple[int, str | None]] = []

    def note_call(real: Real, graph: Any, *arguments: Any) -> Any:
        made.append((id(graph), names.innermost(sys._getframe(1))))
        return real(graph, *arguments)

    with _replaced(CompiledFxGraph, "__call__", note_call):
        yield made


@contextmanager
def _replaced(owner: Any, name: str, instead: Real) -> Iterator[None]:
    """Inside, `instead` is called, with what it stands for before its arguments."""
    real = owner.__dict__[name]

    def replacement(*arguments: Any, **options: Any) -> Any:
        return instead(real, *arguments, **options)

    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, real)


@contextmanager
def _settings(tag: str) -> Iterator[None]:
    """Inside, provenance is on, and compiled code is cached apart from what has another tag. Settings of torch are the
    thread's own in newer versions and the process's in older ones, so they are changed and changed back while nothing
    else is being compiled."""
    from torch._dynamo.convert_frame import compile_lock

    settings: Any = torch.compiler.config
    patches = ExitStack()
    with compile_lock:
        patches.enter_context(inductor_config().patch({"trace.provenance_tracking_level": 1}))
        patches.enter_context(settings.patch(cache_key_tag=f"{settings.cache_key_tag}/{tag}"))
    try:
        yield
    finally:
        with compile_lock:
            patches.close()
