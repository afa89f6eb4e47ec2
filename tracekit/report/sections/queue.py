"""How far the host ran ahead of the GPU."""

from __future__ import annotations

from collections.abc import Callable

from tracekit.model.analysis import DeviceQueue, Percentiles
from tracekit.model.comparison import Side
from tracekit.numbers import count, duration, percent
from tracekit.report.document import Column, Table
from tracekit.report.sides import Sides
from tracekit.report.words.common import scope_of

#: A figure of one device's queue, for so many steps.
Figure = Callable[[DeviceQueue, int], str]


def _delay(of: Callable[[DeviceQueue], Percentiles | None]) -> Figure:
    def told(queue: DeviceQueue, _steps: int) -> str:
        found = of(queue)
        if found is None:
            return "none"
        return " · ".join(duration(us) for us in (found.p10_us, found.p50_us, found.p90_us, found.p99_us))

    return told


def _time(of: Callable[[DeviceQueue], float]) -> Figure:
    def told(queue: DeviceQueue, steps: int) -> str:
        whole = queue.starved_us + queue.delayed_us + queue.hand_to_mouth_us + queue.backed_up_us
        return f"{duration(of(queue) / steps)} ({percent(of(queue) / whole if whole else None, 0)})"

    return told


FIGURES: dict[str, Figure] = {
    "Launches, copies and sets": lambda queue, steps: count(queue.items / steps),
    "of them found nothing in flight": lambda queue, _steps: percent(
        queue.starved_items / queue.items if queue.items else None, 0
    ),
    "Launch to start, kernels: p10 · p50 · p90 · p99": _delay(lambda queue: queue.delays),
    "Launch to start, CUDA graphs": _delay(lambda queue: queue.graph_delays),
    "Idle, nothing in flight (starved)": _time(lambda queue: queue.starved_us),
    "Idle, something in flight (delayed)": _time(lambda queue: queue.delayed_us),
    "At work, nothing waits": _time(lambda queue: queue.hand_to_mouth_us),
    "At work, more waits": _time(lambda queue: queue.backed_up_us),
    "Waiting launches, average over time": lambda queue, _steps: f"{queue.mean_depth:,.1f}",
    "Waiting launches, at most": lambda queue, _steps: count(queue.most_depth),
}


def queue_table(sides: Sides) -> Table | None:
    """The queue of each side's GPU; None where launches were not recorded, and for several GPUs."""
    queues = [(queue, side.steps) for _, side in sides if (queue := _queue(side)) is not None]
    if len(queues) < len(sides):
        return None
    return Table(
        caption=f"How far the host ran ahead of the GPU, {scope_of(sides)}",
        columns=(Column("Figure", numeric=False), *(Column(letter) for letter, _ in sides)),
        rows=tuple((label, *(figure(*each) for each in queues)) for label, figure in FIGURES.items()),
        note="As recorded. Kernels inside CUDA graphs have no launch of their own: a graph is one launch.",
    )


def _queue(side: Side) -> DeviceQueue | None:
    queues = side.analysis.queue or ()
    return queues[0] if len(queues) == 1 else None
