"""Was a GPU held back, shared, or clocked differently while it was timed?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tracekit.comparison.judging.timed import Timed
from tracekit.model.comparison import BUSY_MOVES
from tracekit.model.gpu import GpuState
from tracekit.model.note import Note, distinct

#: A limit that held for less of the time than this changes no median by as much as timing scatters.
SLOWED_SHARE = 0.01
#: The same for samples, which are few and taken when a call has just ended.
SLOWED_SAMPLES = 0.05
#: Forms whose median clocks are further apart are not compared alike: busy time moves by as much from recording to
#: recording anyway.
CLOCKS_APART = BUSY_MOVES


def find_disturbance(a: Timed, b: Timed, called: tuple[str, str] = ("A", "B")) -> Iterator[Note]:
    """A grave note for each: held back by power or temperature, other processes on the GPU, clocks that differ.
    `called` is what the sides are called where the clocks of both are told."""
    limits = [(side.label, limit) for side in (a, b) for limit in find_limits(_state(side))]
    # Forms of one run share the counters, and mostly the limit.
    for limit in distinct(limit for _label, limit in limits):
        labels = list(dict.fromkeys(label for label, each in limits if each == limit))
        yield replace(limit, facts={"sides": labels, **limit.facts}, grave=True)
    others = {side.label: other_processes(_state(side)) for side in (a, b)}
    most = max(others.values(), default=0)
    if most:
        labels = [label for label, number in others.items() if number]
        yield Note("gpu_shared", facts={"sides": labels, "processes": most}, grave=True)
    yield from _clocks(a, b, called)


def _state(side: Timed) -> GpuState | None:
    return side.form.gpu_state if side.form else None


def find_limits(state: GpuState | None) -> Iterator[Note]:
    """What held the GPU back while forms were timed, as far as that matters."""
    if state is None:
        return
    timed_us = state.timed_us
    for limit, us in (state.slowed_us or {}).items():
        if timed_us and us > SLOWED_SHARE * timed_us:
            yield Note("throttled", facts={"limit": limit, "share": min(us / timed_us, 1)})
    # What a counter tells exactly, samples need not tell again.
    counted = {word for limit, us in (state.slowed_us or {}).items() if us for word in (limit, f"{limit} limit")}
    during = state.during()
    for reason in dict.fromkeys(reason for sample in during for reason in sample.slowed_by or ()):
        if reason.partition(" (")[0] in counted:
            continue
        number = sum(reason in (sample.slowed_by or ()) for sample in during)
        if number > SLOWED_SAMPLES * len(during):
            facts = {"reason": reason, "samples": number, "of_samples": len(during)}
            yield Note("throttled_in_samples", facts=facts)


def other_processes(state: GpuState | None) -> int:
    """How many processes besides had the GPU open at most."""
    return max((sample.other_processes or 0 for sample in state.samples), default=0) if state else 0


def _clocks(a: Timed, b: Timed, called: tuple[str, str]) -> Iterator[Note]:
    one, other = (state.sm_clock_mhz if (state := _state(side)) else None for side in (a, b))
    if one and other and abs(other / one - 1) > CLOCKS_APART:
        lower = a if one < other else b
        known = a.wall_us is not None and b.wall_us is not None and a.wall_us != b.wall_us
        faster = min(a, b, key=lambda side: side.wall_us or 0.0).label if known else None
        facts = {"sides": list(called), "clocks_mhz": [one, other], "lower": lower.label, "faster": faster}
        yield Note("clocks_differ", facts=facts, grave=True)
