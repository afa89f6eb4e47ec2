"""Was a GPU held back, shared, or clocked differently while it was timed?"""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.comparison.timed import Timed
from tracekit.model.comparison import BUSY_MOVES
from tracekit.model.gpu_state import GpuState
from tracekit.numbers import percent

#: A limit that held for less of the time than this changes no median by as much as timing scatters.
SLOWED_SHARE = 0.01
#: The same for samples, which are few and taken when a call has just ended.
SLOWED_SAMPLES = 0.05
#: Forms whose median clocks are further apart are not compared alike: busy time moves by as much from recording to
#: recording anyway.
CLOCKS_APART = BUSY_MOVES


def find_disturbance(a: Timed, b: Timed, called: tuple[str, str] = ("A", "B")) -> Iterator[str]:
    """A sentence for each: held back by power or temperature, other processes on the GPU, clocks that differ. `called`
    is what the sides are called where the clocks of both are told."""
    held = [(side.label, how) for side in (a, b) for how in held_back(_state(side))]
    # Forms of one run share the counters, and mostly the limit.
    for how in dict.fromkeys(how for _label, how in held):
        labels = " and ".join(dict.fromkeys(label for label, each in held if each == how))
        yield f"{labels}: the GPU was held back while it was timed: {how}. Times are of a throttled GPU."
    others = {side.label: other_processes(_state(side)) for side in (a, b)}
    most = max(others.values(), default=0)
    if most:
        labels = " and ".join(label for label, number in others.items() if number)
        several = f"{most} other processes" if most > 1 else "another process"
        yield f"{labels}: {several} had the GPU open while it was timed; whether they computed is not known."
    yield from _clocks(a, b, called)


def _state(side: Timed) -> GpuState | None:
    return side.form.gpu_state if side.form else None


def held_back(state: GpuState | None) -> Iterator[str]:
    """What held the GPU back while forms were timed, in words, as far as that matters."""
    if state is None:
        return
    timed_us = state.timed_us
    for limit, us in (state.slowed_us or {}).items():
        if timed_us and us > SLOWED_SHARE * timed_us:
            yield f"by its {limit} limit for {percent(min(us / timed_us, 1), 0)} of the time"
    # What a counter tells exactly, samples need not tell again.
    counted = {word for limit, us in (state.slowed_us or {}).items() if us for word in (limit, f"{limit} limit")}
    during = state.during()
    for reason in dict.fromkeys(reason for sample in during for reason in sample.slowed_by or ()):
        if reason.partition(" (")[0] in counted:
            continue
        number = sum(reason in (sample.slowed_by or ()) for sample in during)
        if number > SLOWED_SAMPLES * len(during):
            yield f"{reason}, in {number} of {len(during)} samples between calls"


def other_processes(state: GpuState | None) -> int:
    """How many processes besides had the GPU open at most."""
    return max((sample.other_processes or 0 for sample in state.samples), default=0) if state else 0


def _clocks(a: Timed, b: Timed, called: tuple[str, str]) -> Iterator[str]:
    one, other = (state.sm_clock_mhz if (state := _state(side)) else None for side in (a, b))
    if one and other and abs(other / one - 1) > CLOCKS_APART:
        first, second = called
        yield (
            f"The GPU's clock was {one:,.0f} MHz between {first}'s calls and {other:,.0f} MHz between {second}'s: "
            f"{_what_the_clock_does(a, b, lower=a if one < other else b)}."
        )


def _what_the_clock_does(a: Timed, b: Timed, *, lower: Timed) -> str:
    """A lower clock makes calls longer as far as they wait for the GPU: it widens the difference of a form that is
    slower anyway, and hides some of what a faster one gains."""
    if a.wall_us is None or b.wall_us is None or a.wall_us == b.wall_us:
        return f"as far as calls wait for the GPU, {lower.label} is slower for its clock"
    faster = a if a.wall_us < b.wall_us else b
    if lower is faster:
        return f"{faster.label} is faster at the lower clock, which hides a part of the difference"
    return f"a part of the difference may be the clock's, as far as {lower.label} waits for the GPU"
