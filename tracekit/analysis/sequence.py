"""What did the GPU do in one step, in the order in which it was asked to, and which operator asked?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis.families import family_of
from tracekit.analysis.launches import GRAPH_LAUNCH
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
    """The operators around a launch, and a number that tells the outermost one's calls apart."""

    operator: Operator
    within: tuple[str, ...]
    call: int


def list_work(trace: Trace, window: str = "auto", steps: tuple[int, int] | None = None) -> Sequence:
    """Every kernel, copy and set of the window, in the order of the calls that launched them, and within one call (a
    CUDA graph's) in the order of their start.

    When all steps ran the same it is that of one step, with mean durations. Operators are known if the trace holds
    those of most activities (a replayed CUDA graph's have none), their inputs if it was read with shapes. Raises
    TracekitError when nothing matches `window`.
    """
    scope = find_scope(trace, window, steps)
    work = in_launch_order(scope)
    asked = _find_askers(trace, work)
    activities = tuple(
        Activity(
            name,
            family_of(name) if kind == "kernel" else kind,
            nanoseconds / 1e3,
            each.operator if each else None,
            each.within if each else (),
            each.call if each else None,
        )
        for (name, kind, nanoseconds), each in zip(
            work.select("name", "kind", pl.col("end_ns") - pl.col("start_ns")).iter_rows(), asked, strict=True
        )
    )
    known: OperatorSource = "own" if 2 * sum(each is not None for each in asked) >= len(asked) > 0 else "none"
    each_step = _divided(activities, work["step"].to_numpy())
    count = max(len(scope.spans), 1)
    if len(each_step) == count and all(_same_work(one, other) for one, other in pairwise(each_step)):
        return Sequence(tuple(map(_mean, zip(*each_step, strict=True))), 1.0, known)
    return Sequence(activities, 1 / count, known)


def in_launch_order(scope: Scope) -> pl.DataFrame:
    """The window's activities, step by step, with the launching call's name, thread and start."""
    calls = scope.calls.select("call", launched_by="name", launched_on="thread", launched_ns="start_ns")
    work = scope.activities.join(calls, on="call", how="left", maintain_order="left")
    # What has no recorded launch stands where it started.
    return work.sort("step", pl.coalesce("launched_ns", "start_ns"), "start_ns", maintain_order=True)


def _divided(activities: tuple[Activity, ...], steps: NDArray[np.int64]) -> list[tuple[Activity, ...]]:
    edges = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(activities)]
    return [activities[begin:end] for begin, end in pairwise(edges)]


def _same_work(one: tuple[Activity, ...], other: tuple[Activity, ...]) -> bool:
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
        asked[row] = _Asked(Operator(names[row], dims, dtypes), tuple(names[each] for each in chain), first + chain[0])
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
    shapes, types = _decoded(dims), _decoded(dtypes)
    if not all(isinstance(each, list) for each in shapes):
        return _NOT_RECORDED
    if len(types) != len(shapes) or not all(isinstance(each, str) for each in types):
        types = [""] * len(shapes)
    flat: list[tuple[tuple[int, ...], str]] = []
    for shape, type_ in zip(shapes, types, strict=True):
        of_list = shape if shape and all(isinstance(each, list) for each in shape) else [shape]
        flat += [(tuple(each), type_) for each in of_list]
    if not all(isinstance(size, int) for shape, _ in flat for size in shape):
        return _NOT_RECORDED
    return tuple(shape for shape, _ in flat), tuple(type_ for _, type_ in flat)


def _decoded(text: str | None) -> list[Any]:
    if text is None:
        return []
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return found if isinstance(found, list) else []
