"""What did the GPU and the host thread that feeds it do, moment by moment, in one step?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis.families import family_of
from tracekit.analysis.gaps import PER_GAP, Gaps, cut_by_steps, find_gaps
from tracekit.analysis.idle import leading_causes
from tracekit.analysis.links import launching_calls
from tracekit.analysis.sequence import order_work
from tracekit.analysis.timeline import lay_flat
from tracekit.analysis.window import Scope, columns, find_scope
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.timeline import Bars, Label, StepTimeline
from tracekit.model.trace import Trace

#: Of each kind the longest are kept.
MOST_BARS = 40_000

Ints = NDArray[np.int64]


def draw_step(trace: Trace, window: str = "auto", steps: tuple[int, int] | None = None) -> StepTimeline | None:
    """The step of median length among those with work on the first GPU; the whole recording where no steps are marked.
    Its positions are those of `list_work` for the same window. None without GPU activity in the window. Raises
    TracekitError when nothing matches `window`."""
    if not trace.activities.height:
        return None
    scope = find_scope(trace, window, steps)
    if not scope.windows or not scope.activities.height:
        return None
    device = min(scope.windows)
    windows = scope.step_windows.get(device, scope.windows[device])
    ordered = order_work(trace, scope)
    work = ordered.table.with_columns(place=ordered.places).filter(pl.col("device") == device)
    at = _median_step(windows, work["step"])
    start, end = (int(each) for each in windows[at])
    own = work.filter(pl.col("step") == at).sort("start_ns", maintain_order=True)
    labels = _Labels()
    kept, left_out = _longest(*columns(own, "start_ns", "end_ns"))
    own = own[kept]
    starts, ends = columns(own, "start_ns", "end_ns")
    streams = tuple(own["stream"].unique(maintain_order=True).to_list())
    names = [
        Label(name, family_of(name) if kind == "kernel" else kind) for name, kind in own.select("name", "kind").rows()
    ]
    return StepTimeline(
        step=scope.spans[at].index if scope.spans else None,
        length_us=(end - start) / 1e3,
        device=device,
        other_devices=len(scope.windows) - 1,
        streams=streams,
        work=_bars(starts, ends, labels.of(names), _lanes(own, streams), start, left_out),
        positions=tuple(own["place"].to_list()),
        gaps=_gap_bars(trace, scope, device, at, labels, start),
        host=_host_bars(trace, scope, at, labels, (start, end)),
        labels=tuple(labels.numbers),
    )


class _Labels:
    """Labels by number, each once."""

    def __init__(self) -> None:
        self.numbers: dict[Label, int] = {}

    def of(self, labels: Iterable[Label]) -> list[int]:
        return [self.numbers.setdefault(label, len(self.numbers)) for label in labels]


def _median_step(windows: Ints, steps: pl.Series) -> int:
    """The one of median length of these steps; of two the shorter."""
    working = steps.unique().sort().to_numpy()
    lengths = (windows[:, 1] - windows[:, 0])[working]
    return int(working[np.argsort(lengths, kind="stable")[(len(working) - 1) // 2]])


def _lanes(own: pl.DataFrame, streams: tuple[int | None, ...]) -> list[int]:
    lanes = {stream: at for at, stream in enumerate(streams)}
    return [lanes[each] for each in own["stream"].to_list()]


def _longest(starts: Ints, ends: Ints) -> tuple[Ints, int]:
    """The rows of the longest stretches, in order, and how many are left out."""
    if len(starts) <= MOST_BARS:
        return np.arange(len(starts), dtype=np.int64), 0
    return np.sort(np.argsort(starts - ends, kind="stable")[:MOST_BARS]), len(starts) - MOST_BARS


def _bars(starts: Ints, ends: Ints, labels: list[int], lanes: list[int], origin: int, left_out: int) -> Bars:
    return Bars(
        starts_us=tuple(((starts - origin) / 1e3).tolist()),
        durations_us=tuple(((ends - starts) / 1e3).tolist()),
        labels=tuple(labels),
        lanes=tuple(lanes),
        left_out=left_out,
    )


def _gap_bars(trace: Trace, scope: Scope, device: int, at: int, labels: _Labels, origin: int) -> Bars:
    gaps = find_gaps(trace, scope, device)
    if scope.spans:
        pieces, steps = cut_by_steps(scope, gaps)
        gaps = _some(pieces, np.flatnonzero(steps == at))
    kept, left_out = _longest(gaps.starts, gaps.ends)
    gaps = _some(gaps, kept)
    causes = labels.of(Label("idle", cause) for cause in leading_causes(trace, scope, gaps))
    return _bars(gaps.starts, gaps.ends, causes, [0] * len(causes), origin, left_out)


def _some(gaps: Gaps, rows: Ints) -> Gaps:
    return replace(gaps, **{name: getattr(gaps, name)[rows] for name in PER_GAP})


def _host_bars(trace: Trace, scope: Scope, at: int, labels: _Labels, bounds: tuple[int, int]) -> Bars:
    thread = scope.spans[at].thread if scope.spans else _launching_thread(scope)
    if thread is None:
        return Bars((), (), (), (), 0)
    flat = lay_flat(trace, thread, launching_calls(scope.linked, scope.calls))
    inside = (flat.ends > bounds[0]) & (flat.starts < bounds[1]) & (flat.ends > flat.starts)
    starts, ends = (np.clip(each[inside], *bounds) for each in (flat.starts, flat.ends))
    kept, left_out = _longest(starts, ends)
    names = flat.table["name"].gather(flat.events[inside][kept]).to_list()
    codes = flat.codes[inside][kept].tolist()
    told = labels.of(Label(name, IDLE_CAUSES[code]) for name, code in zip(names, codes, strict=True))
    return _bars(starts[kept], ends[kept], told, [0] * len(told), bounds[0], left_out)


def _launching_thread(scope: Scope) -> int | None:
    """The thread that launched most of the window's work; None where no launch is recorded."""
    launchers = scope.activities.join(scope.calls.select("call", "thread"), on="call")["thread"]
    return int(launchers.mode().sort()[0]) if len(launchers) else None
