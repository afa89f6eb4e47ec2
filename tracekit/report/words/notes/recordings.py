"""Notes on what the recordings hold, over what they were read, and how they stand beside timed calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracekit.model.analysis import HealthFinding
from tracekit.numbers import duration
from tracekit.report.words.health import health_sentence

WINDOWS = {"steps": "its marked steps", "span": "one span", "whole": "the whole recording"}


def same_recording(*, path: str) -> str:
    return f"Both sides are the same recording ({path}): every change is 0."


def cpu_run() -> str:
    return (
        "This is a CPU run. It shows operators, Inductor's C++ kernels and wall times; it cannot show GPU kernels, "
        "launches, idle time or their causes, and says nothing about how a GPU would fare."
    )


def no_gpu_activity(subject: str) -> str:
    return f"{subject} has no GPU activity: kernels, idle time and waterfall cannot be compared."


def several_gpus(subject: str, *, gpus: int) -> str:
    return f"{subject} ran on {gpus} GPUs: figures are sums, and no waterfall is drawn."


def not_read_over_steps() -> str:
    return "The recordings were not read over their steps, so their figures do not stand beside unprofiled times."


def windows_differ(*, a: str, b: str) -> str:
    return (
        f"A was read over {WINDOWS[a]} and B over {WINDOWS[b]}: figures per step do not mean the same on both sides; "
        "pass --window to read both alike."
    )


def whole_recordings() -> str:
    return "Figures are of the whole recordings, not per step: both must hold the same work."


def named_spans() -> str:
    return "Figures are per span: both spans must hold the same work."


def steps_differ(*, a: int, b: int) -> str:
    return f"A was recorded over {a} steps, B over {b}; figures are per step."


def busier_than_the_call(subject: str, *, busy_us: float, wall_us: float, idle_taken_for_0: bool) -> str:
    taken = "is taken for 0" if idle_taken_for_0 else "is not known, figures are as recorded"
    return (
        f"{subject}: the GPU was busy for {duration(busy_us)} of the recorded step, longer than the "
        f"unprofiled call ({duration(wall_us)}): its idle time {taken}."
    )


def timed_slower_than_recorded(
    subject: str, *, wall_us: float, recorded_us: float, timed_calls: int, first_calls: bool
) -> str:
    if first_calls:
        timed = "call was" if timed_calls == 1 else "calls were"
        why = f"only {timed_calls} {timed} timed, and first calls are slow. Time more (--iterations)."
    else:
        why = "something else used this machine meanwhile, or its clocks changed. Measure again."
    return (
        f"{subject}: timed calls took {wall_us / recorded_us:.1f} times as long as recorded ones, though "
        f"recording slows calls: {why}"
    )


def damaged_recording(subject: str, *, health: str, count: int, facts: dict[str, Any]) -> str:
    """`health` is the code of the finding that says so, `facts` are its facts."""
    return f"{subject}: {health_sentence(HealthFinding(health, 'error', count, facts))}"


def no_rich_recording(subject: str) -> str:
    return f"{subject} has no rich recording, so host time is not divided into causes on either side."


SENTENCES: dict[str, Callable[..., str]] = {
    each.__name__: each
    for each in (
        same_recording,
        cpu_run,
        no_gpu_activity,
        several_gpus,
        not_read_over_steps,
        windows_differ,
        whole_recordings,
        named_spans,
        steps_differ,
        busier_than_the_call,
        timed_slower_than_recorded,
        damaged_recording,
        no_rich_recording,
    )
}
