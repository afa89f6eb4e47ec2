"""What did the GPU do in one step, in the order in which it was asked to, and which operator asked?"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis.families import family_of
from tracekit.analysis.launches import GRAPH_LAUNCH, in_launch_order
from tracekit.analysis.nesting import nest
from tracekit.analysis.window import Scope, find_scope
from tracekit.model.sequence import Activity, Operator, OperatorSource, Sequence
from tracekit.model.trace import Trace

#: What asks for work: `aten::add`, `flash_attn::forward`, and Inductor's own events around the launch of a Triton
#: kernel, which are named after the kernel and alone state its inputs. Compiled regions and autograd's nodes only hold
#: them.
ASKING = re.compile(r"(?!autograd::)\w+::\w|triton_")

_NOT_RECORDED: tuple[tuple[tuple[int, ...], ...], tuple[str, ...]] = ((), ())


@dataclass(frozen=True, slots=True)
class _Asked:
    """The operators around a launch, and numbers that tell calls apart: of the outermost one and of `operator`."""

    operator: Operator
    within: tuple[str, ...]
    call: int
    operator_call: int


@dataclass(frozen=True, slots=True, eq=False)
class OrderedWork:
    """The window's activities as a table in the order of `in_launch_order`, the sequence that they make, and the place
    of each row in it: steps that ran the same share theirs."""

    table: pl.DataFrame
    sequence: Sequence
    places: NDArray[np.int64]


def list_work(trace: Trace, window: str = "auto", steps: tuple[int, int] | None = None) -> Sequence:
    """Every kernel, copy and set of the window, in the order of the calls that launched them, and within one call (a
    CUDA graph's) in the order of their start.

    When all steps ran the same it is that of one step, with mean durations. Operators are known if the trace holds
    those of most activities (a replayed CUDA graph's have none), their inputs if it was read with shapes. Raises
    TracekitError when nothing matches `window`.
    """
    return order_work(trace, find_scope(trace, window, steps)).sequence


def order_work(trace: Trace, scope: Scope) -> OrderedWork:
    """What `list_work` tells, with where each activity stands in it."""
    work = in_launch_order(scope)
    activities, known = _with_operators(trace, work)
    graphs = _graph_launches(work)
    count = max(len(scope.spans), 1)
    edges = _step_edges(work["step"], count)
    each_step = [_Step(activities[begin:end], graphs[begin:end]) for begin, end in pairwise(edges)]
    found = [each.in_order_of(each_step[0]) for each in each_step]
    alike = [order for order in found if order is not None]
    if len(alike) < count:
        starts = tuple(edges[:-1]) if count > 1 else ()
        return OrderedWork(work, Sequence(activities, 1 / count, known, starts=starts), np.arange(work.height))
    same = zip(
        *([step.activities[at] for at in order] for step, order in zip(each_step, alike, strict=True)), strict=True
    )
    places = np.concatenate([np.argsort(np.array(order, dtype=np.int64)) for order in alike])
    return OrderedWork(work, Sequence(tuple(map(_mean, same)), 1.0, known), places)


def _with_operators(trace: Trace, work: pl.DataFrame) -> tuple[tuple[Activity, ...], OperatorSource]:
    """The table's rows with the operators that asked for them, and whether those of most are known."""
    asked = _find_askers(trace, work)
    activities = tuple(
        Activity(
            name,
            family_of(name) if kind == "kernel" else kind,
            nanoseconds / 1e3,
            each.operator if each else None,
            each.within if each else (),
            each.call if each else None,
            each.operator_call if each else None,
        )
        for (name, kind, nanoseconds), each in zip(
            work.select("name", "kind", pl.col("end_ns") - pl.col("start_ns")).iter_rows(), asked, strict=True
        )
    )
    return activities, "own" if 2 * sum(each is not None for each in asked) >= len(asked) > 0 else "none"


def _step_edges(steps: pl.Series, count: int) -> list[int]:
    """Where each of the steps begins, and the end of the last; one without activities ends where it begins."""
    edges: list[int] = np.searchsorted(steps.to_numpy(), np.arange(count + 1)).tolist()
    return edges


def _graph_launches(work: pl.DataFrame) -> list[int | None]:
    """The launching call of what a CUDA graph runs; None for all else."""
    in_graph = work["launched_by"].fill_null("").str.contains(GRAPH_LAUNCH, literal=True)
    return [call if graph else None for call, graph in zip(work["call"], in_graph, strict=True)]


@dataclass(frozen=True, slots=True)
class _Step:
    """The activities of one step, and the CUDA graph launch that each is of."""

    activities: tuple[Activity, ...]
    graphs: list[int | None]

    def in_order_of(self, other: _Step) -> tuple[int, ...] | None:
        """Which of this step's activities is what the other step ran at each of its places; None where they differ.

        Parallel branches of a CUDA graph start in another order each time: within one launch the same activities are
        the same work, whatever their order.
        """
        mine, theirs = self._runs(), other._runs()
        if len(self.activities) != len(other.activities) or len(mine) != len(theirs):
            return None
        found: list[int] = []
        for (run, graph), (model_run, model_graph) in zip(mine, theirs, strict=True):
            if graph != model_graph:
                return None
            one, model = ([step.activities[at] for at in each] for step, each in ((self, run), (other, model_run)))
            order = _in_places_of(one, model) if graph else range(len(one))
            if order is None or not _same_work([one[at] for at in order], model):
                return None
            found += (run[at] for at in order)
        return tuple(found)

    def _runs(self) -> list[tuple[range, bool]]:
        """Where stretches stand that were launched by one CUDA graph launch, or by none."""
        places = groupby(range(len(self.graphs)), key=self.graphs.__getitem__)
        runs = [(graph is not None, list(run)) for graph, run in places]
        return [(range(run[0], run[-1] + 1), graph) for graph, run in runs]


def _in_places_of(some: list[Activity], model: list[Activity]) -> list[int] | None:
    """Their places, reordered so that names stand as in `model`, equal ones in their own order; None where other ones
    are there."""
    if Counter(each.name for each in some) != Counter(each.name for each in model):
        return None
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for at, each in enumerate(some):
        waiting[each.name].append(at)
    return [waiting[each.name].popleft() for each in model]


def _same_work(one: list[Activity], other: list[Activity]) -> bool:
    return len(one) == len(other) and all(
        a.name == b.name and a.operator == b.operator for a, b in zip(one, other, strict=True)
    )


def _mean(same: tuple[Activity, ...]) -> Activity:
    """The activity of the first step, as long as those of all steps on average."""
    return replace(same[0], duration_us=sum(each.duration_us for each in same) / len(same))


def _find_askers(trace: Trace, work: pl.DataFrame) -> list[_Asked | None]:
    """Which operators were open on the launching thread when each activity was launched."""
    found: list[_Asked | None] = [None] * work.height
    names = trace.host["name"].unique()
    asking = names.filter(pl.Series([ASKING.match(name) is not None for name in names], dtype=pl.Boolean))
    operators = trace.host.filter((pl.col("kind") == "op") & pl.col("name").is_in(asking.implode()))
    first = 0
    # A CUDA graph's kernels were asked for when it was captured.
    single = ~work["launched_by"].fill_null(GRAPH_LAUNCH).str.contains(GRAPH_LAUNCH, literal=True)
    launched_on = work["launched_on"].fill_null(-1).to_numpy()
    moments = work["launched_ns"].fill_null(-1).to_numpy()
    for thread in np.unique(launched_on[single.to_numpy()]).tolist():
        own = operators.filter(pl.col("thread") == thread)
        rows = np.flatnonzero((launched_on == thread) & single.to_numpy())
        for row, asked in zip(rows.tolist(), _askers_on(own, moments[rows], first), strict=True):
            found[row] = asked
        first += own.height
    return found


def _askers_on(operators: pl.DataFrame, moments: NDArray[np.int64], first: int) -> Iterable[_Asked | None]:
    """The operators of one thread that were open at each of these moments. Calls are numbered from `first`."""
    nesting = nest(operators["start_ns"].to_numpy(), operators["end_ns"].to_numpy())
    at = np.searchsorted(nesting.starts, moments, side="right") - 1
    inside = (at >= 0) & (moments < nesting.ends[at]) if len(nesting.starts) else np.zeros(len(moments), dtype=bool)
    innermost = np.where(inside, nesting.rows[at], -1) if len(nesting.starts) else np.full(len(moments), -1)
    wanted = np.unique(innermost[inside])
    chains = {row: _chain(row, nesting.parents) for row in wanted.tolist()}
    names = operators["name"]
    shaped = "dims" in operators.columns
    asked: dict[int, _Asked | None] = {-1: None}
    for row, chain in chains.items():
        dims, dtypes = _inputs(operators["dims"][row], operators["dtypes"][row]) if shaped else _NOT_RECORDED
        values = _values(operators["values"][row]) if shaped else ()
        strides = _sizes(operators["strides"][row]) or () if shaped else ()
        operator = Operator(names[row], dims, dtypes, values, strides if len(strides) == len(dims) else ())
        asked[row] = _Asked(operator, tuple(names[each] for each in chain), first + chain[0], first + row)
    return (asked[row] for row in innermost.tolist())


def _chain(row: int, parents: NDArray[np.int64]) -> list[int]:
    """The rows from the outermost event to this one."""
    chain = [row]
    while (above := int(parents[chain[-1]])) >= 0:
        chain.append(above)
    return chain[::-1]


@cache
def _inputs(dims: str | None, dtypes: str | None) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    """The sizes and types of an operator's inputs; neither where the file's text is not what the profiler writes."""
    shapes, types = _of_tensors(dims), _decoded(dtypes)
    if shapes is None:
        return _NOT_RECORDED
    if len(types) != len(shapes) or not all(isinstance(each, str) for each in types):
        types = [""] * len(shapes)
    flat = [(shape, type_) for some, type_ in zip(shapes, types, strict=True) for shape in some]
    return tuple(shape for shape, _ in flat), tuple(type_ for _, type_ in flat)


@cache
def _sizes(text: str | None) -> tuple[tuple[int, ...], ...] | None:
    """The numbers of each input, as `_inputs` has the sizes; None where the file's text is not what the profiler
    writes."""
    found = _of_tensors(text)
    return None if found is None else tuple(numbers for some in found for numbers in some)


def _of_tensors(text: str | None) -> list[list[tuple[int, ...]]] | None:
    """A list for each input, with the numbers of its one tensor, or of each where it is a list of such."""
    found = _decoded(text)
    if not all(isinstance(each, list) for each in found):
        return None
    lists = [each if each and all(isinstance(one, list) for one in each) else [each] for each in found]
    if not all(isinstance(number, int) for some in lists for one in some for number in one):
        return None
    return [[tuple(one) for one in some] for some in lists]


def _values(text: str | None) -> tuple[str, ...]:
    """The arguments in words; nothing where the file's text is not what the profiler writes."""
    found = _decoded(text)
    return tuple(found) if all(isinstance(each, str) for each in found) else ()


def _decoded(text: str | None) -> list[Any]:
    if text is None:
        return []
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return found if isinstance(found, list) else []
