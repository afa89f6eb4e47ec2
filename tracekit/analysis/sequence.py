"""What did the GPU do in one step, in the order in which it was asked to, and which operator asked? And what did it and
the host thread that feeds it do moment by moment?"""

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby, islice, pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit import interval
from tracekit.analysis.gaps import find_gaps
from tracekit.analysis.idle import leading_causes
from tracekit.analysis.kernels import GRAPH_LAUNCH, family_of, in_launch_order
from tracekit.analysis.links import launching_calls
from tracekit.analysis.nesting import make_line, nearest, nest
from tracekit.analysis.timeline import Timeline, lay_flat
from tracekit.analysis.window import Scope, columns, find_scope
from tracekit.interpreter import collector_paused
from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.sequence import Activity, Operator, OperatorSource, Sequence
from tracekit.model.timeline import Bars, Label, StepTimeline
from tracekit.model.trace import INPUT_COLUMNS, Trace

#: What asks for work: `aten::add`, `flash_attn::forward`, and Inductor's own events around the launch of a Triton
#: kernel, which are named after the kernel and alone state its inputs. Compiled regions and autograd's nodes only hold
#: them.
ASKING = re.compile(r"(?!autograd::)\w+::\w|triton_")
#: So many operators around a launch are named, the innermost; real ones are ten deep.
MOST_AROUND = 64
#: The longest are kept, of the GPU's work and gaps, and of what the host did: several operators a kernel.
MOST_BARS = 40_000
MOST_HOST_BARS = 200_000

Objects = NDArray[np.object_]
#: Labels by number, each once.
Numbers = defaultdict[Label, int]


def list_work(trace: Trace, window: str = "auto", steps: tuple[int, int] | None = None) -> Sequence:
    """Every kernel, copy and set of the window, in the order of the calls that launched them, and within one call (a
    CUDA graph's) in the order of their start.

    When all steps ran the same it is that of one step, with mean durations. Operators are known if the trace holds
    those of most activities (a replayed CUDA graph's have none), their inputs if it was read with shapes. Raises
    TracekitError when nothing matches `window`.
    """
    return _order_work(trace, find_scope(trace, window, steps))[0]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _order_work(
    trace: Trace, scope: Scope, typical: Callable[[list[float]], float] = _mean
) -> tuple[Sequence, pl.DataFrame]:
    """The sequence, and the window's activities as a table in the order of `in_launch_order`, with the `place` of each
    in the sequence: steps that ran the same share theirs."""
    work = in_launch_order(scope)
    askers, known = _find_askers(trace, work)
    names = _each_text_once(work["name"])
    families = map(family_of, names, _each_text_once(work["kind"]))
    lengths_us = (np.subtract(*columns(work, "end_ns", "start_ns")) / 1e3).tolist()
    with collector_paused():
        activities = tuple(map(Activity, names, families, lengths_us, *(each.tolist() for each in askers)))
    source: OperatorSource = "own" if 2 * known >= work.height > 0 else "none"
    count = max(len(scope.spans), 1)
    if count == 1:
        return Sequence(activities, 1.0, source), work.with_row_index("place")
    in_graph = work["launched_by"].fill_null("").str.contains(GRAPH_LAUNCH, literal=True)
    graphs = [call if graph else None for call, graph in zip(work["call"], in_graph, strict=True)]
    # Where each step begins, and the end of the last; one without activities ends where it begins.
    edges: list[int] = np.searchsorted(work["step"].to_numpy(), np.arange(count + 1)).tolist()
    (first, did), *others = (_in_one_order(activities[begin:end], graphs[begin:end]) for begin, end in pairwise(edges))
    if any(other != did for _, other in others):
        return Sequence(activities, 1 / count, source, starts=tuple(edges[:-1])), work.with_row_index("place")
    # Which activity of each step is what the first step ran at each of its places.
    orders = [each[np.argsort(first)] for each in (first, *(order for order, _ in others))]
    same = zip(
        *([activities[begin + at] for at in each] for begin, each in zip(edges, orders, strict=False)), strict=True
    )
    means = tuple(replace(each[0], duration_us=typical([one.duration_us for one in each])) for each in same)
    places = np.concatenate([np.argsort(each) for each in orders])
    return Sequence(means, 1.0, source), work.with_columns(place=places)


def _in_one_order(
    activities: Iterable[Activity], graphs: list[int | None]
) -> tuple[Ints, list[tuple[int, bool, str, Operator | None]]]:
    """The places of a step's activities in an order that is one for all steps that did the same, and what they did.

    Parallel branches of a CUDA graph start in another order each time: within one launch (`graphs`) they stand by their
    names, equal ones in their own order.
    """
    runs = [number for number, (_, run) in enumerate(groupby(graphs)) for _ in run]
    did = [
        (run, graph is not None, each.name, each.operator)
        for run, graph, each in zip(runs, graphs, activities, strict=True)
    ]
    order = sorted(range(len(did)), key=lambda at: (did[at][0], did[at][2] if did[at][1] else ""))
    return np.array(order, dtype=np.int64), [did[at] for at in order]


def _find_askers(trace: Trace, work: pl.DataFrame) -> tuple[tuple[Objects, ...], int]:
    """For each activity the innermost operator that was open on the launching thread at its launch, the names of all of
    these, and the numbers, over all threads, of the outermost one's call and of the innermost's: None, no names and
    None where none was. And of how many there was one."""
    of_operators, within, calls, operator_calls = (np.full(work.height, None, dtype=object) for _ in range(4))
    within.fill(())
    names = trace.host["name"].unique()
    asking = names.filter(pl.Series([ASKING.match(name) is not None for name in names], dtype=pl.Boolean))
    shaped = INPUT_COLUMNS if "dims" in trace.host.columns else ()
    # A CUDA graph's kernels were asked for when it was captured.
    single = ~work["launched_by"].fill_null(GRAPH_LAUNCH).str.contains(GRAPH_LAUNCH, literal=True).to_numpy()
    threads, moments = columns(work, "launched_on", "called_ns")
    rows = np.flatnonzero(single)
    line = make_line(trace, np.unique(threads[rows]))
    launching = pl.col("thread").is_in(pl.Series(line.lanes).implode())
    asked = (pl.col("kind") == "op") & pl.col("name").is_in(asking.implode())
    # Those of one thread stay in the order of their start.
    operators = trace.host.filter(asked & launching).sort("thread", maintain_order=True)
    (numbers, *times) = columns(operators, "thread", "start_ns", "end_ns")
    nesting = nest(*(line.place(numbers, each) for each in times))
    at = interval.containing(nesting.starts, nesting.ends, line.place(threads[rows], moments[rows]))
    rows, innermost = rows[at >= 0], nesting.rows[at[at >= 0]]
    wanted, which = np.unique(innermost, return_inverse=True)
    # What is alike is decoded once.
    told = operators[wanted].select("name", *shaped)
    distinct = told.unique(maintain_order=True).with_row_index("number")
    decoded = _as_objects([as_operator(*row) for row in distinct.drop("number").iter_rows()])
    numbered = told.join(distinct, on=told.columns, how="left", nulls_equal=True, maintain_order="left")
    of_operators[rows] = decoded[numbered["number"].to_numpy()][which]
    within[rows] = _as_objects(_chains(nesting.parents, wanted, operators["name"]))[which]
    around = nearest(nesting.parents, nesting.parents < 0)[innermost]
    calls[rows], operator_calls[rows] = np.where(around >= 0, around, innermost), innermost
    return (of_operators, within, calls, operator_calls), len(rows)


def _each_text_once(texts: pl.Series) -> list[str]:
    """As a list, in which equal texts are one: the names of a million kernels are a gigabyte, and few."""
    distinct = texts.unique()
    numbers = texts.cast(pl.Enum(distinct)).to_physical().to_numpy()
    found: list[str] = _as_objects(distinct.to_list())[numbers].tolist()
    return found


def _as_objects(things: list[Any]) -> Objects:
    # Tuples stay what they are.
    return np.fromiter(things, dtype=object, count=len(things))


def _chains(parents: Ints, rows: Ints, names: pl.Series) -> list[tuple[str, ...]]:
    """The names of the events around each of these rows, the outermost first and its own last; of more than MOST_AROUND
    the innermost."""
    # Numbers that other tables' names have a part in: they may be larger than this one is long.
    codes = names.cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    chains, above = np.unique(codes[rows], return_inverse=True)[1], parents[rows]
    # One round a level: the number of a chain and the next name around it make the number of a longer one.
    levels = [rows]
    while len(levels) < MOST_AROUND and (some := above >= 0).any():
        levels.append(above)
        longer = chains * (int(codes.max()) + 2) + np.where(some, codes[above] + 1, 0)
        chains = np.unique(longer, return_inverse=True)[1]
        above = np.where(some, parents[above], -1)
    _, examples, which = np.unique(chains, return_index=True, return_inverse=True)
    around = np.stack([level[examples] for level in reversed(levels)], axis=1)
    texts = iter(_each_text_once(names.gather(around[around >= 0])))
    distinct = [tuple(islice(texts, count)) for count in (around >= 0).sum(axis=1).tolist()]
    return [distinct[at] for at in which.tolist()]


@cache
def as_operator(
    name: str, dims: str | None = None, dtypes: str | None = None, values: str | None = None, strides: str | None = None
) -> Operator:
    """An operator's call from what the columns of `Trace.host` hold of it; what the profiler does not write so is left
    out."""
    shapes, types, words = _of_tensors(dims), _decoded(dtypes), _decoded(values)
    if shapes is None:
        return Operator(name, (), ())
    if len(types) != len(shapes) or not all(isinstance(each, str) for each in types):
        types = [""] * len(shapes)
    flat = [(shape, type_) for some, type_ in zip(shapes, types, strict=True) for shape in some]
    steps = tuple(numbers for some in _of_tensors(strides) or [] for numbers in some)
    return Operator(
        name,
        tuple(shape for shape, _ in flat),
        tuple(type_ for _, type_ in flat),
        tuple(words) if all(isinstance(each, str) for each in words) else (),
        steps if len(steps) == len(flat) else (),
    )


def _of_tensors(text: str | None) -> list[list[tuple[int, ...]]] | None:
    """A list for each input, with the numbers of its one tensor, or of each where it is a list of such."""
    found = _decoded(text)
    if not all(isinstance(each, list) for each in found):
        return None
    lists = [each if each and all(isinstance(one, list) for one in each) else [each] for each in found]
    if not all(isinstance(number, int) for some in lists for one in some for number in one):
        return None
    return [[tuple(one) for one in some] for some in lists]


def _decoded(text: str | None) -> list[Any]:
    if text is None:
        return []
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def list_and_draw(
    trace: Trace,
    window: str = "auto",
    steps: tuple[int, int] | None = None,
    typical: Callable[[list[float]], float] = _mean,
) -> tuple[Sequence, StepTimeline | None]:
    """What `list_work` gives, and the step of median length among those with work on the first GPU, or the whole
    recording where no steps are marked. None without GPU activity in the window. Of steps that ran the same each
    activity's duration is what is `typical` of them. Raises TracekitError when nothing matches `window`."""
    scope = find_scope(trace, window, steps)
    sequence, work = _order_work(trace, scope, typical)
    return sequence, _drawn(trace, scope, work) if scope.windows and work.height else None


def _drawn(trace: Trace, scope: Scope, work: pl.DataFrame) -> StepTimeline:
    device = min(scope.windows)
    windows = scope.step_windows.get(device, scope.windows[device])
    work = work.filter(pl.col("device") == device)
    # Of an even number of steps the shorter of the two in the middle.
    working = work["step"].unique().sort().to_numpy()
    lengths = (windows[:, 1] - windows[:, 0])[working]
    at = int(working[np.argsort(lengths, kind="stable")[(len(working) - 1) // 2]])
    start, end = (int(each) for each in windows[at])
    own = work.filter(pl.col("step") == at).sort("start_ns", maintain_order=True)
    labels: Numbers = defaultdict(itertools.count().__next__)
    whole, own = own.height, own[_longest(*columns(own, "start_ns", "end_ns"), most=MOST_BARS)]
    streams = own["stream"].unique(maintain_order=True).to_list()
    names = _numbered(own.select("name", "kind"), lambda name, kind: Label(name, family_of(name, kind)), labels)
    starts, ends = columns(own, "start_ns", "end_ns")
    bars = _bars(starts, ends, start, names, whole)
    gaps = find_gaps(trace, scope, device)
    if scope.spans:
        # Only what of them lies in the step.
        gaps = gaps.within(np.arange(len(gaps.starts)), *np.clip((gaps.starts, gaps.ends), start, end))
        gaps = gaps.at(np.flatnonzero(gaps.ends > gaps.starts))
    kept = gaps.at(_longest(gaps.starts, gaps.ends, most=MOST_BARS))
    # What the step's thread did; without steps the thread that launched most of the work.
    launchers = scope.activities["launched_on"].drop_nulls()
    most = int(launchers.mode().sort()[0]) if len(launchers) else -1
    thread = scope.spans[at].thread if scope.spans else most
    threads = {thread, *np.unique(kept.thread).tolist(), *np.unique(kept.other).tolist()} - {-1}
    flat = lay_flat(trace, threads, launching_calls(scope.linked, scope.calls))
    causes = tuple(labels[Label("idle", cause)] for cause in leading_causes(trace, flat, kept))
    return StepTimeline(
        step=scope.spans[at].index if scope.spans else None,
        length_us=(end - start) / 1e3,
        device=device,
        other_devices=len(scope.windows) - 1,
        streams=tuple(streams),
        work=replace(bars, lanes=tuple(map(streams.index, own["stream"]))),
        positions=tuple(own["place"].to_list()),
        gaps=_bars(kept.starts, kept.ends, start, causes, len(gaps.starts)),
        host=_host_bars(flat, thread, labels, (start, end)),
        labels=tuple(labels),
    )


def _longest(starts: Ints, ends: Ints, *, most: int) -> Ints:
    return np.sort(np.argsort(starts - ends, kind="stable")[:most])


def _numbered(told: pl.DataFrame, label_of: Callable[..., Label], labels: Numbers) -> tuple[int, ...]:
    """The number of each row's label, which is made once for rows that are alike."""
    distinct = told.unique(maintain_order=True)
    numbers = pl.Series("number", [labels[label_of(*row)] for row in distinct.iter_rows()], dtype=pl.Int64)
    found = told.join(distinct.with_columns(numbers), on=told.columns, how="left", maintain_order="left")
    return tuple(found["number"].to_list())


def _bars(starts: Ints, ends: Ints, origin: int, labels: tuple[int, ...], whole: int) -> Bars:
    """These stretches of so many, in one lane."""
    starts_us, durations_us = ((starts - origin) / 1e3).tolist(), ((ends - starts) / 1e3).tolist()
    return Bars(tuple(starts_us), tuple(durations_us), labels, (0,) * len(starts), whole - len(starts))


def _host_bars(flat: Timeline, thread: int, labels: Numbers, bounds: tuple[int, int]) -> Bars:
    begin, end = flat.line.place(np.full(2, thread), np.array(bounds)).tolist()
    inside = np.flatnonzero((flat.ends > begin) & (flat.starts < end) & (flat.ends > flat.starts))
    starts, ends = (np.clip(each[inside], begin, end) for each in (flat.starts, flat.ends))
    kept = _longest(starts, ends, most=MOST_HOST_BARS)
    codes = pl.Series("code", flat.codes[inside[kept]])
    told = flat.table.select("name")[flat.events[inside[kept]]].with_columns(codes)
    names = _numbered(told, lambda name, code: Label(name, IDLE_CAUSES[code]), labels)
    return _bars(starts[kept], ends[kept], begin, names, len(inside))
