"""What charts show, those of the page and those of `figures()` alone. Every value is in a table too."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase
from types import MappingProxyType

from tracekit.model.comparison import Comparison
from tracekit.model.groups import ModuleTime
from tracekit.model.idle_estimate import NOTHING
from tracekit.numbers import (
    MINUS,
    change_with_share,
    count,
    decimals_within,
    duration,
    duration_change,
    percent,
    scale_of,
)
from tracekit.report.document import Chart, ChartRow, DrawnBar
from tracekit.report.sections.call import CALL_PARTS, call_times
from tracekit.report.sections.compilation import PHASES
from tracekit.report.sections.headline import LETTERS, Names, part_label, waterfall_changes
from tracekit.report.sections.idle import causes_present, ranged_idle_causes
from tracekit.report.sections.kernels import times_by_family
from tracekit.report.words.common import Sides, both_sides, cause_words, is_on_cpu, scope_of, shared_scope, side_name

#: What is said of a chart to whoever does not see it.
BELOW = "the table below holds the same values"
#: Sides that the style sheet has a hue for (`side-a` to `side-i`). The others have the same ones again, hatched.
HUES = "abcdefghi"

#: Colours of the bar of what a call consists of, and of the figure in it.
SEGMENTS = {
    "library": ("hue-blue", "paper"),
    "other": ("hue-olive", "paper"),
    "communication": ("hue-deep", "paper"),
    "idle": ("rule", "ink"),
}

#: Levels of modules that are drawn, and the share of the whole that each is wide at least.
MOST_LEVELS, LEAST_WIDTH = 7, 0.002
#: A module's colour is strongest where its time changed by this share, and it covers the paper as far as text on it
#: stays legible (tests/report/test_colours.py); what changed by less than 1 % has none.
FULL_CHANGE, STRONGEST, FAINTEST, NO_CHANGE = 0.5, 0.5, 0.08, 0.01


def waterfall_chart(comparison: Comparison, id_: str = "waterfall", names: Names = LETTERS) -> Chart | None:
    """What makes the change from A to B, from a zero line on; None where there is no waterfall."""
    changes = waterfall_changes(comparison)
    if comparison.waterfall is None:
        return None
    a, b = names
    # That a rank waits longer for others is neither gain nor loss.
    unjudged = {part_label(part) for part in comparison.waterfall.parts if part.label == "exposed_communication"}
    # Where each bar ends; the last one begins at zero again.
    ends = list(itertools.accumulate((us for _, us in changes), initial=0.0))
    unit, scale, _ = scale_of(max(-min(ends), max(ends)))
    falls = [(label, start, end, us) for (label, us), start, end in zip(changes, ends, ends[1:], strict=False)]
    rows: list[ChartRow] = []
    for label, start, end, us in (*falls, (f"all changes: {b} {MINUS} {a}", 0.0, ends[-1], ends[-1])):
        sums, text = len(rows) == len(falls), duration_change(us)
        colour = "total" if sums else "kind-communication" if label in unjudged else "loss" if us > 0 else "gain"
        bar = DrawnBar(start / scale, end / scale, colour, f"{label}: {text}", text)
        rows.append(ChartRow(label, (bar,), sums))
    title = f"What changed from {a} to {b}, {shared_scope(comparison, names)}"
    return Chart(id_, title, f"{title}; {BELOW}.", unit, tuple(rows))


def call_chart(comparison: Comparison) -> Chart | None:
    """One call of both sides, divided into what it consists of; None where the sides have no common scale."""
    sides = (comparison.a, comparison.b)
    if (found := call_times((comparison,), sides)) is None:
        return None
    basis, calls = found
    unit, scale, decimals = scale_of(max(each.whole_us for each in calls))
    rows, told = [], []
    for side, call in zip(sides, calls, strict=True):
        start, bars = 0.0, []
        for kind, us in call.parts_us.items():
            text, name, (colour, ink) = f"{us / scale:,.{decimals}f}", CALL_PARTS[kind], SEGMENTS[kind]
            words = f"{side.label}, {name}: {text} {unit}"
            bars.append(DrawnBar(start, start + us / scale, colour, words, text, name, ink))
            start += us / scale
        rows.append(ChartRow(f"{side.label} {call.whole_us / scale:,.{decimals}f} {unit}", tuple(bars)))
        # The figures, for who does not see them.
        parts = ", ".join(f"{CALL_PARTS[kind]} {duration(us)}" for kind, us in call.parts_us.items())
        told.append(f"{side.label} {duration(call.whole_us)}: {parts}")
    title = f"One call, {unit} ({'unprofiled' if basis == 'unprofiled' else 'with profiler'})"
    return Chart("call", title, f"{title}; {'; '.join(told)}.", unit, tuple(rows), inside=True)


def module_chart(comparison: Comparison) -> Chart | None:
    """Time by module, the whole model above its parts, as wide as A's time is; None where no module is known."""
    root = comparison.modules
    if root is None or root.a_us <= 0:
        return None
    unit, scale, _ = scale_of(root.a_us)
    levels: list[list[DrawnBar]] = [[] for _ in range(MOST_LEVELS)]

    def draw(module: ModuleTime, name: str, level: int, start_us: float) -> None:
        """The module, and below it those that it holds, the longest first."""
        ends = start_us / scale, (start_us + module.a_us) / scale
        levels[level].append(_module_bar(module, name, *ends, what=what))
        for child in sorted(module.children, key=lambda each: -each.a_us) if level + 1 < MOST_LEVELS else ():
            if child.a_us >= LEAST_WIDTH * root.a_us:
                draw(child, child.path.removeprefix(f"{module.path}."), level + 1, start_us)
            start_us += child.a_us

    apart = any(group.kind == "communication" for group in comparison.groups)
    time, what = ("Operator time", "operators") if is_on_cpu(comparison) else ("GPU time", "kernels")
    every = "all operators" if is_on_cpu(comparison) else "all GPU kernels"
    draw(root, "GPU kernels but communication" if apart else every, 0, 0.0)
    title = f"{time} by module: as wide as in {comparison.a.label}, coloured by the change to {comparison.b.label}"
    rows = tuple(ChartRow("", tuple(bars)) for bars in levels if bars)
    return Chart("modules", title, f"{title}; the tree above holds the same values.", unit, rows, inside=True)


def _module_bar(module: ModuleTime, name: str, start: float, end: float, *, what: str) -> DrawnBar:
    change = module.delta_us / module.a_us
    kind, colour = f"within {percent(NO_CHANGE, 0)}", "total"
    if abs(change) >= NO_CHANGE:
        kind, colour = ("more", "loss") if change > 0 else ("less time", "gain")
    strength = FAINTEST + (STRONGEST - FAINTEST) * min(abs(change) / FULL_CHANGE, 1.0)
    times = f"{duration(module.a_us)} → {duration(module.b_us)}"
    kernels = f"{count(module.a_kernels)} → {count(module.b_kernels)} {what}"
    told = f"{module.path or name}: {times}, {change_with_share(module.delta_us, module.a_us)}, {kernels}"
    shown = f"{name} {f'{change * 100:+.0f} %'.replace('-', MINUS)}"
    return DrawnBar(start, end, colour, told, shown, kind, strength=round(strength, 3))


def comparison_charts(comparison: Comparison) -> Iterator[Chart | None]:
    """Every chart of two sides."""
    yield call_chart(comparison)
    yield waterfall_chart(comparison)
    yield module_chart(comparison)
    yield from side_charts(both_sides(comparison))


def side_charts(sides: Sides) -> Iterator[Chart | None]:
    """Those that any number of sides have."""
    yield from family_charts(sides)
    yield cause_chart(sides)
    yield phase_chart(sides)


def family_charts(sides: Sides) -> tuple[Chart, ...]:
    figures = times_by_family(sides)
    if not figures:
        return ()
    times = {family: [us / 1e3 for _, us in each] for family, each in figures.items()}
    counts = {family: [number for number, _ in each] for family, each in figures.items()}
    scope = scope_of(sides)
    return (
        _grouped("family-times", f"GPU time by kernel family in milliseconds, {scope}", times, sides, "ms"),
        _grouped("family-counts", f"Number of kernels by family, {scope}", counts, sides, "kernels"),
    )


def cause_chart(sides: Sides) -> Chart | None:
    if any(side.analysis.idle is None for _, side in sides):
        return None
    profiled = any(side.unprofiled_idle_us is None for _, side in sides)
    known, present = [ranged_idle_causes(side, profiled=profiled) for _, side in sides], causes_present(sides)
    us = {cause_words(cause): [each.get(cause, NOTHING) for each in known] for cause in present}
    how = "as recorded" if profiled else "unprofiled calls"
    title = f"Idle time by cause in milliseconds, {how}, {scope_of(sides)}"
    values = {label: [each.us / 1e3 for each in figures] for label, figures in us.items()}
    reaches = {
        label: [(each.low_us / 1e3, each.high_us / 1e3) if each.half_us else None for each in figures]
        for label, figures in us.items()
    }
    return _grouped("idle-causes", title, values, sides, "ms", reaches) if values else None


def phase_chart(sides: Sides) -> Chart | None:
    """Time of compiling, a bar for each phase of each side that was compiled."""
    found: list[dict[str, float]] = [
        {phase.phase: phase.seconds for phase in side.diagnostics.phases} if side.diagnostics else {}
        for _, side in sides
    ]
    compiled = [at for at, each in enumerate(found) if each]
    values = {
        words: [found[at].get(phase, 0.0) for at in compiled]
        for phase, words in PHASES.items()
        if any(phase in each for each in found)
    }
    those = tuple(sides[at] for at in compiled)
    return _grouped("compile-phases", "Time of compiling by phase in seconds", values, those, "s") if values else None


def _within(figure: float, reach: tuple[float, float], more: int = 0) -> str:
    """With the digits that its range supports, and so many more, three at most."""
    return f"{figure:,.{min(decimals_within((reach[1] - reach[0]) / 2, 3) + more, 3)}f}"


def _grouped(
    id_: str,
    title: str,
    values: Mapping[str, Sequence[float]],
    sides: Sides,
    unit: str,
    reaches: Mapping[str, Sequence[tuple[float, float] | None]] = MappingProxyType({}),
) -> Chart:
    """A bar of each side for each label, the first label on top. `reaches` are from where to where each may lie."""
    # Which of several sides a lone one is. No two of 18 look alike.
    looks = [ascii_lowercase.index((letter or "b").lower()) for letter, _ in sides]
    names = [side_name(letter, side) if letter else "" for letter, side in sides]
    spread = {label: reaches.get(label, [None] * len(sides)) for label in values}
    ranged = [(us, reach) for label in values for us, reach in zip(values[label], spread[label], strict=True) if reach]
    alike = Counter(_within(figure, reach) for figure, reach in dict(ranged).items())
    rows = []
    for label, figures in values.items():
        bars = []
        for figure, look, name, reach in zip(figures, looks, names, spread[label], strict=True):
            text = count(figure) if unit == "kernels" else f"{figure:,.3f}"
            if reach:
                text = _within(figure, reach)
                # Bars of two lengths go by two figures.
                text = _within(figure, reach, more=1) if alike[text] > 1 else text
            words = f"{', '.join(filter(None, (label, name)))}: {text} {unit}"
            hue = f"side-{HUES[look % len(HUES)]}"
            bars.append(DrawnBar(0.0, figure, hue, words, text, name, hatched=look >= len(HUES), reach=reach))
        rows.append(ChartRow(label, tuple(bars)))
    return Chart(id_, title, f"{title}; {BELOW}.", unit, tuple(rows))
