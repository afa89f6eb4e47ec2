"""At which clocks, power and temperature each side ran, and beside whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tracekit.model.gpu_state import GpuSample, GpuState
from tracekit.numbers import MISSING, duration
from tracekit.report.document import Column, Table
from tracekit.report.sides import Sides, side_name

FIGURES = {
    "Clock of the processors": ("sm_clock_mhz", "MHz"),
    "Clock of the memory": ("memory_clock_mhz", "MHz"),
    "Power": ("power_w", "W"),
    "Temperature": ("temperature_c", "°C"),
}

#: In place of a figure that was counted once for both sides.
SAME = "the same figure as A's"

NOTE = (
    "Before → between the timed calls (lowest to highest of the samples) → after. Asked of the driver five times a "
    "second at most, never while a call ran; nothing was set."
)


def gpu_state_table(sides: Sides) -> Table | None:
    """The GPU before, between and after the timed calls; None where no side was watched."""
    states = [side.form.gpu_state if side.form else None for _, side in sides]
    if not any(states):
        return None
    columns = (Column("GPU", numeric=False), *(Column(side_name(*each), numeric=False) for each in sides))
    figures = [dict(_figures(state)) for state in states]
    rows = tuple((label, *(each[label] for each in figures)) for label in figures[0])
    return Table("The GPU while it was timed", columns, (*rows, _counted_row(states)), NOTE)


def _figures(state: GpuState | None) -> Iterator[tuple[str, str]]:
    for label, (field, unit) in FIGURES.items():
        yield label, _course(state, field, unit) if state else MISSING
    yield "Power limit", f"{state.power_limit_w:,.0f} W" if state and state.power_limit_w else MISSING
    yield "Limits in force between its calls", _reasons(state) if state else MISSING
    yield "Other processes on it", _others(state.samples) if state else MISSING


def _course(state: GpuState, field: str, unit: str) -> str:
    parts = [_range(getattr(each, field) for each in state.samples if each.moment == moment) for moment in _MOMENTS]
    return f"{' → '.join(parts)} {unit}" if any(part != MISSING for part in parts) else MISSING


_MOMENTS = ("before", "during", "after")


def _range(figures: Iterable[float | None]) -> str:
    known = [figure for figure in figures if figure is not None]
    if not known:
        return MISSING
    low, high = f"{min(known):,.0f}", f"{max(known):,.0f}"
    return low if low == high else f"{low} to {high}"


def _reasons(state: GpuState) -> str:
    """The driver's reasons at the samples between this form's own calls."""
    told = [sample.slowed_by for sample in state.during() if sample.slowed_by is not None]
    if not told:
        return MISSING
    numbers = Counter(reason for reasons in told for reason in reasons)
    return ", ".join(f"{reason} ({number} of {len(told)} samples)" for reason, number in numbers.items()) or "none"


def _counted_row(states: Sequence[GpuState | None]) -> tuple[str, ...]:
    """The driver's counters go on whichever form is run: of one run there is one figure for both."""
    first, told = states[0], [_counted(state) if state else MISSING for state in states]
    for at, state in enumerate(states[1:], 1):
        shared = first and state and (first.slowed_us, first.timed_us) == (state.slowed_us, state.timed_us)
        if shared and told[0] != MISSING:
            told[at] = SAME
    return "Held back while its run was timed, all forms together", *told


def _counted(state: GpuState) -> str:
    if state.slowed_us is None:
        return MISSING
    counted = [f"{limit} limit for {duration(us)}" for limit, us in state.slowed_us.items() if us]
    return f"{', '.join(counted) or 'never'}{f' of {duration(state.timed_us)}' if state.timed_us and counted else ''}"


def _others(samples: Iterable[GpuSample]) -> str:
    return _range(sample.other_processes for sample in samples)
