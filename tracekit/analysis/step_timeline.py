"""What did the GPU and the host thread that feeds it do, moment by moment, in one step?"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import count

import numpy as np
import polars as pl
from msgspec.structs import replace

from tracekit.analysis.gaps import find_gaps
from tracekit.analysis.idle import leading_causes
from tracekit.analysis.kernels import family_of
from tracekit.analysis.links import launching_calls
from tracekit.analysis.sequence import OrderedWork, order_work
from tracekit.analysis.timeline import lay_flat
from tracekit.analysis.window import Scope, columns, find_scope
from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.sequence import Sequence
from tracekit.model.timeline import Bars, Label, StepTimeline
from tracekit.model.trace import Trace

#: The longest are kept, of the GPU's work and gaps, and of what the host did: several operators a kernel.
MOST_BARS = 40_000
MOST_HOST_BARS = 200_000

#: Labels by number, each once.
Numbers = defaultdict[Label, int]


def list_and_draw(
    trace: Trace, window: str = "auto", steps: tuple[int, int] | None = None
) -> tuple[Sequence, StepTimeline | None]:
    """What `list_work` gives; and the step of median length among those with work on the first GPU, or the whole
    recording where no steps are marked. None without GPU activity in the window. Raises TracekitError when nothing
    matches `window`."""
    scope = find_scope(trace, window, steps)
    ordered = order_work(trace, scope)
    drawable = scope.windows and scope.activities.height
    return ordered.sequence, _drawn(trace, scope, ordered) if drawable else None


def _drawn(trace: Trace, scope: Scope, ordered: OrderedWork) -> StepTimeline:
    device = min(scope.windows)
    windows = scope.step_windows.get(device, scope.windows[device])
    work = ordered.table.with_columns(place=ordered.places).filter(pl.col("device") == device)
    # Of an even number of steps the shorter of the two in the middle.
    working = work["step"].unique().sort().to_numpy()
    lengths = (windows[:, 1] - windows[:, 0])[working]
    at = int(working[np.argsort(lengths, kind="stable")[(len(working) - 1) // 2]])
    start, end = (int(each) for each in windows[at])
    own = work.filter(pl.col("step") == at).sort("start_ns", maintain_order=True)
    labels: Numbers = defaultdict(count().__next__)
    whole, own = own.height, own[_longest(*columns(own, "start_ns", "end_ns"), most=MOST_BARS)]
    streams = own["stream"].unique(maintain_order=True).to_list()
    names = (Label(name, family_of(name, kind)) for name, kind in own.select("name", "kind").iter_rows())
    starts, ends = columns(own, "start_ns", "end_ns")
    bars = _bars(starts, ends, start, names, labels, whole)
    gaps = find_gaps(trace, scope, device)
    if scope.spans:
        # Only what of them lies in the step.
        gaps = gaps.within(np.arange(len(gaps.starts)), *np.clip((gaps.starts, gaps.ends), start, end))
        gaps = gaps.at(np.flatnonzero(gaps.ends > gaps.starts))
    kept = gaps.at(_longest(gaps.starts, gaps.ends, most=MOST_BARS))
    causes = (Label("idle", cause) for cause in leading_causes(trace, scope, kept))
    return StepTimeline(
        step=scope.spans[at].index if scope.spans else None,
        length_us=(end - start) / 1e3,
        device=device,
        other_devices=len(scope.windows) - 1,
        streams=tuple(streams),
        work=replace(bars, lanes=tuple(map(streams.index, own["stream"]))),
        positions=tuple(own["place"].to_list()),
        gaps=_bars(kept.starts, kept.ends, start, causes, labels, len(gaps.starts)),
        host=_host_bars(trace, scope, at, labels, (start, end)),
        labels=tuple(labels),
    )


def _longest(starts: Ints, ends: Ints, *, most: int) -> Ints:
    return np.sort(np.argsort(starts - ends, kind="stable")[:most])


def _bars(starts: Ints, ends: Ints, origin: int, told: Iterable[Label], labels: Numbers, whole: int) -> Bars:
    """These stretches of so many, in one lane."""
    starts_us, durations_us = ((starts - origin) / 1e3).tolist(), ((ends - starts) / 1e3).tolist()
    numbers = tuple(labels[each] for each in told)
    return Bars(tuple(starts_us), tuple(durations_us), numbers, (0,) * len(starts), whole - len(starts))


def _host_bars(trace: Trace, scope: Scope, at: int, labels: Numbers, bounds: tuple[int, int]) -> Bars:
    """What the step's thread did; without steps the thread that launched most of the work."""
    launchers = scope.activities["launched_on"].drop_nulls()
    if not scope.spans and not len(launchers):
        return Bars((), (), (), (), 0)
    thread = scope.spans[at].thread if scope.spans else int(launchers.mode().sort()[0])
    flat = lay_flat(trace, [thread], launching_calls(scope.linked, scope.calls))
    inside = np.flatnonzero((flat.ends > bounds[0]) & (flat.starts < bounds[1]) & (flat.ends > flat.starts))
    starts, ends = (np.clip(each[inside], *bounds) for each in (flat.starts, flat.ends))
    kept = _longest(starts, ends, most=MOST_HOST_BARS)
    names = flat.table["name"].gather(flat.events[inside[kept]])
    causes = (IDLE_CAUSES[code] for code in flat.codes[inside[kept]].tolist())
    return _bars(starts[kept], ends[kept], bounds[0], map(Label, names, causes), labels, len(inside))
