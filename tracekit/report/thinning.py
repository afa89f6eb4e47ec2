"""Which bars of a timeline are drawn where all of them would make the page too large?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tracekit.model.timeline import Bars, StepTimeline

#: Fewer bars of a kind say nothing any more: a timeline that does not fit with these is as large as its names.
FEWEST_BARS = 64

Timelines = tuple[StepTimeline, ...]


def thinned(timelines: Timelines, fits: Callable[[Timelines], bool]) -> Timelines:
    """The timelines with the longest bars of each kind, as many as fit; as they are where all do. What is left out is
    counted in `left_out`."""
    most = max((len(bars.labels) for each in timelines for bars in (each.work, each.gaps, each.host)), default=0)
    while most > FEWEST_BARS and not fits(timelines):
        most //= 2
        timelines = tuple(_thinner(each, most) for each in timelines)
    return timelines


def _thinner(timeline: StepTimeline, most: int) -> StepTimeline:
    kept = _longest(timeline.work, most)
    positions = tuple(timeline.positions[at] for at in kept)
    work = _some(timeline.work, kept)
    gaps, host = (_some(bars, _longest(bars, most)) for bars in (timeline.gaps, timeline.host))
    occurring = sorted({*work.labels, *gaps.labels, *host.labels})
    numbers = {label: number for number, label in enumerate(occurring)}
    work, gaps, host = (
        replace(bars, labels=tuple(numbers[label] for label in bars.labels)) for bars in (work, gaps, host)
    )
    labels = tuple(timeline.labels[label] for label in occurring)
    return replace(timeline, labels=labels, work=work, positions=positions, gaps=gaps, host=host)


def _longest(bars: Bars, most: int) -> list[int]:
    """The places of the longest bars, in order."""
    return sorted(sorted(range(len(bars.labels)), key=lambda at: -bars.durations_us[at])[:most])


def _some(bars: Bars, kept: list[int]) -> Bars:
    return Bars(
        starts_us=tuple(bars.starts_us[at] for at in kept),
        durations_us=tuple(bars.durations_us[at] for at in kept),
        labels=tuple(bars.labels[at] for at in kept),
        lanes=tuple(bars.lanes[at] for at in kept),
        left_out=bars.left_out + len(bars.labels) - len(kept),
    )
