"""The sentences of a report on several ways to compile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.model.note import distinct
from tracekit.names import printable
from tracekit.numbers import duration, percent, times
from tracekit.report.sections.numerics import accuracy_sentence
from tracekit.report.sections.reason import reason_sentence
from tracekit.report.words.common import result_word, subject
from tracekit.report.words.notes import note_sentence
from tracekit.shell import variable_words

PROCESSES = (
    "Each speed-up is over the eager form of the same process. From one process to the next it can differ by more than "
    "its interval says."
)


def headline(told: Comparisons) -> str:
    """Which is fastest over its own eager form, and which were not judged."""
    return " ".join((_fastest(told), *_not_judged(told)))


def _fastest(told: Comparisons) -> str:
    if told.leader is None:
        slower = all(each.verdict.result == "slower" for each in told.comparisons)
        return "None is faster than eager." if slower else "None was found to be faster than eager."
    leader = told.comparisons[told.leader]
    name, speedup = printable(leader.b.label), times(leader.verdict.speedup)
    others = [printable(told.comparisons[at].b.label) for at in told.fastest if at != told.leader]
    if others:
        return f"{name} is {speedup} as fast as eager; {' and '.join(others)} cannot be told from it."
    among = " of those that could be judged" if told.not_judged else ""
    return f"{name} is fastest{among}: {speedup} as fast as eager."


def _not_judged(told: Comparisons) -> Iterator[str]:
    """What keeps the others from being fastest is not their speed."""
    compiled: list[str] = []
    few: list[str] = []
    for each in (told.comparisons[at] for at in told.not_judged):
        (compiled if each.compiled_while_timed else few).append(printable(each.b.label))
    if compiled:
        yield f"Not judged, for something was compiled inside timed calls: {', '.join(compiled)}."
    if few:
        yield f"Not judged, for too few calls were timed: {', '.join(few)}."


def sentences(told: Comparisons) -> tuple[str, ...]:
    """What stands below the headline: every form in a line, and what its speed-up is worth."""
    lines = [f"{printable(each.b.label)}: {_found(each)}" for each in told.comparisons]
    return (*lines, *_not_told_apart(told), PROCESSES, *_shortest(told))


def _not_told_apart(told: Comparisons) -> Iterator[str]:
    """Why several are called fastest, whose intervals need not meet."""
    if len(told.fastest) > 1 and told.told_apart_by is not None:
        names = " and ".join(printable(told.comparisons[at].b.label) for at in told.fastest)
        yield (
            f"{names} cannot be told apart: each was timed in a process of its own, so more than "
            f"{percent(told.told_apart_by)} must lie between their intervals. Processes differ by that much: it is how "
            "far the calls of their eager forms are apart, and 2 % at least."
        )


def _found(comparison: Comparison) -> str:
    verdict = comparison.verdict
    if verdict.speedup is None:
        return "not timed."
    text = f"{result_word(comparison).lower()}, {times(verdict.speedup)} as fast as eager"
    spread = f" (95 % interval {verdict.ci95[0]:.3f} to {verdict.ci95[1]:.3f})" if verdict.ci95 else ""
    ends = f"{duration(verdict.a_wall_us)} → {duration(verdict.b_wall_us)} a call"
    accuracy = comparison.accuracy
    amiss = accuracy_sentence(comparison) if accuracy and accuracy.result == "less_accurate" else None
    return " ".join(filter(None, (f"{text}{spread}, {ends}.", reason_sentence(comparison), amiss)))


def _shortest(told: Comparisons) -> Iterator[str]:
    """That another form has the shortest calls, where it has: its eager form was faster too."""
    timed = {at: each.b.wall_us for at, each in enumerate(told.comparisons) if each.b.wall_us is not None}
    if not timed or told.leader is None:
        return
    at = min(timed, key=lambda at: timed[at])
    shortest, leader = told.comparisons[at], told.comparisons[told.leader]
    if at not in (told.leader, *told.not_judged) and _gained_less(shortest, leader):
        ends = f"{printable(shortest.b.label)} has the shortest calls ({duration(timed[at])})"
        yield f"{ends}, and the smaller speed-up: eager was faster in its process."


def _gained_less(one: Comparison, other: Comparison) -> bool:
    """Whether one has the smaller speed-up, and over an eager form that took less time."""
    speedups, walls = (one.verdict.speedup, other.verdict.speedup), (one.a.wall_us, other.a.wall_us)
    if None in speedups or None in walls:
        return False
    return (speedups[0] or 0.0) < (speedups[1] or 0.0) and (walls[0] or 0.0) < (walls[1] or 0.0)


def notes_of_runs(told: Comparisons) -> tuple[str, ...]:
    """What must be known of single runs; what is said of several stands once, with their names."""
    return _with_names(told, grave=False)


def grave(told: Comparisons) -> tuple[str, ...]:
    """The notes without which a verdict misleads, each once."""
    return _with_names(told, grave=True)


def _with_names(told: Comparisons, *, grave: bool) -> tuple[str, ...]:
    found = [(each.b.label, note) for each in told.comparisons for note in each.notes if note.grave == grave]
    return tuple(
        f"{', '.join(name for name, each in found if each == note)}: {note_sentence(note)}"
        for note in distinct(note for _, note in found)
    )


def key_figures(told: Comparisons) -> tuple[tuple[str, str, str], ...]:
    """The speed-up of each form."""
    figures = []
    for each in told.comparisons:
        verdict = each.verdict
        spread = f"95 % interval {verdict.ci95[0]:.3f} to {verdict.ci95[1]:.3f}" if verdict.ci95 else "no interval"
        if verdict.speedup is not None:
            figures.append((printable(each.b.label), times(verdict.speedup), spread))
    return tuple(figures)


def subjects(told: Comparisons) -> str:
    """What was run, on what: the same for all. Variables that steer torch only where they are."""
    side = told.comparisons[0].a
    steered = {variable_words(each.a.settings.variables) for each in told.comparisons if each.a.settings}
    if side.settings and len(steered) > 1:
        side = replace(side, settings=replace(side.settings, variables={}))
    return subject(side)
