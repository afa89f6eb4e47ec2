"""How idle each side really is, and what holds it back: a sentence each."""

from __future__ import annotations

from tracekit.model.comparison import Bound, Comparison, Side
from tracekit.numbers import percent, times
from tracekit.report.words.bounds import bound_because


def limit_sentences(comparison: Comparison) -> tuple[str, ...]:
    """For each side how idle the GPU is, and what holds it back; nothing of a side without GPU figures."""
    sides = ((comparison.a, comparison.a_bound), (comparison.b, comparison.b_bound))
    return tuple(sentence for each in sides if (sentence := limit_sentence(*each)) is not None)


def limit_sentence(side: Side, bound: Bound | None) -> str | None:
    """The same of one side."""
    idle = idle_sentence(side)
    if idle is None:
        return None
    return f"{side.label}: {idle}." + (f" {bound_sentence(bound)}." if bound else "")


def idle_sentence(side: Side) -> str | None:
    """The idle share of the unprofiled call beside the trace's; the trace's own, said to be that, where there is no
    other. None without GPU figures."""
    recorded = side.recorded_idle_share
    if recorded is None:
        return None
    if side.idle_share is None or side.slowdown is None:
        return (
            f"idle {percent(recorded, 0)} as recorded; recording lengthens idle time, and by how much cannot be told: "
            f"{_why_not(side)}"
        )
    slowed = f"recording slowed this form {times(side.slowdown)}"
    if side.slowdown < 1:
        slowed = f"recorded steps took {times(side.slowdown)} the time of timed calls"
    return f"idle {percent(side.idle_share, 0)} (the trace shows {percent(recorded, 0)}: {slowed})"


def _why_not(side: Side) -> str:
    if side.wall_us is None:
        return "there are no unprofiled times"
    if not side.reads_calls:
        return "what was read of the trace is not one call on one GPU"
    return "the recorded step holds more GPU work than the unprofiled call took"


def bound_sentence(bound: Bound) -> str:
    """`Launch-bound: in 59 % of the call ...`."""
    said = f"{bound.kind[:1].upper()}{bound.kind[1:]}" if bound.kind else "What limits it cannot be told"
    return f"{said}: {bound_because(bound)}"
