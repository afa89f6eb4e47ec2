"""Notes on the two sides: what differs besides the compilation, what their recordings hold, the state of the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracekit.model.analysis import HealthFinding
from tracekit.model.option import OPTIONS
from tracekit.numbers import duration, percent
from tracekit.report.words.health import health_sentence
from tracekit.report.words.saying import Sentence
from tracekit.shell import variable_words

#: What a setting, or a fact of the machine, is called.
WORDS = {each.name: each.word for each in OPTIONS} | {
    "gpu": "GPU",
    "gpus": "number of GPUs",
    "driver": "driver",
    "cuda": "CUDA version",
    "cpu": "CPU",
    "cpu_threads": "CPU threads",
    "python": "Python",
    "float32_matmul_precision": "precision of float32 products",
    "variables": "variables of the environment that steer torch",
}
WINDOWS = {"steps": "its marked steps", "span": "one span", "whole": "the whole recording"}


def setting_differs(*, setting: str, a: Any, b: Any, a_name: str | None = None, b_name: str | None = None) -> str:
    """The names of the runs are there where more than two are compared."""
    names = f"{a_name} (A) and {b_name} (B): " if a_name is not None else ""
    return f"{names}The sides differ in {WORDS.get(setting, setting)}: A has {_shown(a)}, B has {_shown(b)}."


def package_differs(*, package: str, **facts: Any) -> str:
    return setting_differs(setting=package, **facts)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return variable_words(value) or "none"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "none recorded" if value is None else str(value)


def windows_differ(*, a: str, b: str) -> str:
    return (
        f"A was read over {WINDOWS[a]} and B over {WINDOWS[b]}: figures per step do not mean the same on both sides; "
        "pass --window to read both alike."
    )


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


def throttled(*, limit: str, share: float, sides: Sequence[str] = ()) -> str:
    return _held_back(f"by its {limit} limit for {percent(share, 0)} of the time", sides)


def throttled_in_samples(*, reason: str, samples: int, of_samples: int, sides: Sequence[str] = ()) -> str:
    return _held_back(f"{reason}, in {samples} of {of_samples} samples between calls", sides)


def _held_back(how: str, sides: Sequence[str]) -> str:
    """In a table that is of one side anyway, it is not named."""
    if not sides:
        return how
    return f"{' and '.join(sides)}: the GPU was held back while it was timed: {how}. Times are of a throttled GPU."


def gpu_shared(*, sides: Sequence[str], processes: int) -> str:
    several = f"{processes} other processes" if processes > 1 else "another process"
    return f"{' and '.join(sides)}: {several} had the GPU open while it was timed; whether they computed is not known."


def clocks_differ(*, sides: Sequence[str], clocks_mhz: Sequence[float], lower: str, faster: str | None) -> str:
    """A lower clock makes calls longer as far as they wait for the GPU: it widens the difference of a form that is
    slower anyway, and hides some of what a faster one gains."""
    one, other = (f"{clock:,.0f} MHz between {name}'s" for name, clock in zip(sides, clocks_mhz, strict=True))
    if faster is None:
        effect = f"as far as calls wait for the GPU, {lower} is slower for its clock"
    elif faster == lower:
        effect = f"{faster} is faster at the lower clock, which hides a part of the difference"
    else:
        effect = f"a part of the difference may be the clock's, as far as {lower} waits for the GPU"
    return f"The GPU's clock was {one} calls and {other}: {effect}."


SENTENCES: dict[str, Sentence] = {
    "throttled": throttled,
    "throttled_in_samples": throttled_in_samples,
    "gpu_shared": gpu_shared,
    "clocks_differ": clocks_differ,
    "same_recording": "Both sides are the same recording ({path}): every change is 0.",
    "cpu_run": (
        "This is a CPU run. It shows operators, Inductor's C++ kernels and wall times; it cannot show GPU kernels, "
        "launches, idle time or their causes, and says nothing about how a GPU would fare."
    ),
    "no_gpu_activity": "{subject} has no GPU activity: kernels, idle time and waterfall cannot be compared.",
    "several_gpus": "{subject} ran on {gpus} GPUs: figures are sums, and no waterfall is drawn.",
    "not_read_over_steps": (
        "The recordings were not read over their steps, so their figures do not stand beside unprofiled times."
    ),
    "windows_differ": windows_differ,
    "whole_recordings": "Figures are of the whole recordings, not per step: both must hold the same work.",
    "named_spans": "Figures are per span: both spans must hold the same work.",
    "steps_differ": "A was recorded over {a} steps, B over {b}; figures are per step.",
    "busier_than_the_call": busier_than_the_call,
    "timed_slower_than_recorded": timed_slower_than_recorded,
    "damaged_recording": damaged_recording,
    "no_rich_recording": "{subject} has no rich recording, so host time is not divided into causes on either side.",
    "setting_differs": setting_differs,
    "package_differs": package_differs,
    "one_side_generates": "Only {side} generates text.",
    "one_side_is_own": "Only {side} is a model of the user's own.",
}
