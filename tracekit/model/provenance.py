"""Where the work came from: operators, modules and lines of the eager form, launch sites of the compiled one.

This is what a run folder's `eager-ops.json.gz`, `compiled-sites.json.gz` and `compiled-triton.json.gz` hold. Lines are
`file:line` with the file as its project or package knows it, never a path of the machine. Modules are named from the
workload's own components down: `transformer.transformer_blocks.0.norm1`.
"""

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from tracekit.model.bounded import Count, Text
from tracekit.model.note import Noted

#: Of both files. A reader takes what it knows.
PROVENANCE_VERSION = 1
#: Why nothing is known of where a graph launches its work.
WithoutSites = Literal["cached_without_provenance", "no_launches_marked"]


def _refuse_positions(positions: Iterable[int | None], count: int, what: str) -> None:
    """Raises ValueError where one of them is beyond the last of so many."""
    for position in positions:
        if position is not None and position >= count:
            raise ValueError(f"{what} {position} is named, and there are {count}")


class TensorShape(Struct, frozen=True):
    """A tensor's sizes and type (`bfloat16`). A size is None where it is symbolic: different from call to call."""

    sizes: tuple[Count | None, ...]
    dtype: Text

    def numel(self) -> int | None:
        """How many elements; None where a size is symbolic."""
        return None if None in self.sizes else prod(self.sizes)  # type: ignore[arg-type]


class EagerOp(Struct, frozen=True):
    """One operator that the eager form dispatched: `aten.addmm.default`.

    `module` is the innermost module that was being called, empty outside of all that are known. `line` is the innermost
    line outside of torch; None where there was none (on a thread of autograd's, without a forward operator). Of a
    backward operator both are those of the forward operator it belongs to. `bytes` are those of all tensors in and out:
    what it reads and writes at most. `flops` by torch's own formula; None where it has none for this operator.
    """

    name: Text
    module: Text
    line: Text | None
    outputs: tuple[TensorShape, ...]
    bytes: Count
    flops: Count | None
    backward: bool = False


class TaggedActivity(Struct, frozen=True):
    """A GPU activity and the operator (a position in `EagerOps.ops`) that launched it; None: outside of all."""

    name: Text
    op: Count | None


class EagerOps(Struct, frozen=True):
    """One call of the eager form. `activities` are in the order of their launch; empty without a GPU."""

    version: Count
    torch: Text
    ops: tuple[EagerOp, ...]
    activities: tuple[TaggedActivity, ...] = ()

    def __post_init__(self) -> None:
        _refuse_positions((each.op for each in self.activities), len(self.ops), "operator")


class GraphNode(Struct, frozen=True):
    """A node of a graph as Inductor lowered it, after all its passes.

    `op` is the eager operator it was decomposed from; None where a pass of the compiler's made it up. `module` is None
    for what stands directly in the compiled function. `order` is the position of the line's own node in the graph as
    Dynamo traced it: nodes of one operator call have it in common.
    """

    name: Text
    target: Text
    op: Text | None
    module: Text | None
    line: Text | None
    order: Count
    outputs: tuple[TensorShape, ...] = ()


class LaunchSite(Struct, frozen=True):
    """A place in the generated code that launches work: a Triton or C++ kernel, or a library call
    (`extern_kernels.addmm`, `torch.ops.aten.X.default`).

    `nodes` are positions in `CompiledGraph.nodes`; None where Inductor tells nothing of this site.
    """

    kernel: Text
    nodes: tuple[Count, ...] | None


class CompiledGraph(Struct, frozen=True):
    """One graph's generated code. `sites` are in the order in which it launches them.

    `key` is how a recording names the graph. `root` is the module it was traced for, which nodes without a module
    belong to; None where nobody knows. `without` is why there are no sites.
    """

    key: Text
    is_backward: bool
    root: Text | None
    nodes: tuple[GraphNode, ...]
    sites: tuple[LaunchSite, ...]
    without: WithoutSites | None = None

    def __post_init__(self) -> None:
        _refuse_positions((node for site in self.sites for node in site.nodes or ()), len(self.nodes), "node")


class GraphCall(Struct, frozen=True):
    """A graph is run for a module: one of several where equal blocks share its code.

    `graph` is a position in `CompiledSites.graphs`, None for one that was made when nobody watched; `module` is None
    where nobody knows.
    """

    graph: Count | None
    module: Text | None


class CompiledActivity(Struct, frozen=True):
    """A GPU activity, the graph call (a position in `CompiledSites.calls`) that launched it, None outside of all, and
    which of the operators directly in that call did (`operator`, and its `ordinal` among them). None for both in the
    replay of a CUDA graph, which has no operators."""

    name: Text
    call: Count | None
    operator: Text | None = None
    ordinal: Count | None = None


class CompiledSites(Struct, frozen=True):
    """The compiled form's graphs, and the calls of them in one step, in order. `activities` are those of that step in
    the order of their launch; empty without a GPU. `noted` is what is missing."""

    version: Count
    torch: Text
    graphs: tuple[CompiledGraph, ...]
    calls: tuple[GraphCall, ...] = ()
    activities: tuple[CompiledActivity, ...] = ()
    noted: tuple[Noted, ...] = ()

    def __post_init__(self) -> None:
        _refuse_positions((each.graph for each in self.calls), len(self.graphs), "graph")
        _refuse_positions((each.call for each in self.activities), len(self.calls), "call")


class KernelSources(Struct, frozen=True):
    """Inductor's source of each Triton kernel, by the name that recordings have for it. Graphs are compiled one by one:
    a name may be that of several kernels. `left_out` are those left out for their size."""

    version: Count
    torch: Text
    sources: dict[Text, tuple[Text, ...]]
    left_out: Count = 0


class SourceLines(Struct, frozen=True):
    """A line of the user's model, and its neighbours, as they are when a report is made: `first` is the number of the
    first of `lines`."""

    first: int
    line: int
    lines: tuple[str, ...]
    changed: bool  #: The file was written after the run had begun.


# msgspec takes no union of two nouns, and need not: a side is never read from a file.
if TYPE_CHECKING:
    Provenance = EagerOps | CompiledSites
else:
    Provenance = Any
