"""What the page draws, as plotly figures. Every value drawn is in a table beside it too."""

import itertools
from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import Any

from msgspec import Struct

from tracekit.model.comparison import Comparison
from tracekit.model.groups import ModuleTime
from tracekit.model.idle_estimate import NOTHING
from tracekit.numbers import MINUS, change_with_share, count, duration, duration_change, percent, scale_of
from tracekit.report.document import Bars, Chart
from tracekit.report.drawing import LEGEND, axis_of, drawn, escaped, told_apart
from tracekit.report.sections.call import CALL_PARTS, CallTime, call_times
from tracekit.report.sections.compilation import PHASES
from tracekit.report.sections.headline import LETTERS, Names, part_label, waterfall_changes
from tracekit.report.sections.idle import causes_present, ranged_idle_causes
from tracekit.report.sections.kernels import times_by_family
from tracekit.report.sides import Sides, both_sides, side_name
from tracekit.report.words.common import cause_words, scope_of, shared_scope

#: Sides that the style sheet has a hue for (`side-a` to `side-i`). The others have the same ones again, hatched.
HUES = "abcdefghi"

BESIDE_BAR = {"xanchor": "left", "xshift": 3, "showarrow": False}
#: Heights in pixels.
PER_BAR = 34
PER_CALL = 44
PER_MODULE = 30
BAR_APART = 16
#: A bar's share of its row.
WATERFALL_WIDTH = 0.65
PER_SIDE = 15
MARGINS = 56

#: What a call consists of, and the colours of the bar, of its edge and of the figure in it.
SEGMENTS = (
    ("matrix_us", CALL_PARTS["library"], "hue-blue", "paper", "paper"),
    ("other_us", CALL_PARTS["other"], "hue-olive", "paper", "paper"),
    ("communication_us", CALL_PARTS["communication"], "hue-deep", "paper", "paper"),
    ("idle_us", CALL_PARTS["idle"], "rule", "soft", "ink"),
)

#: What a figure may be, at the end of its bar.
ENDS: dict[str, Any] = {"type": "data", "symmetric": False, "color": "var(--ink)", "thickness": 1, "width": 3}

#: Levels of modules that are drawn, and the share of the whole that each is wide at least.
MOST_LEVELS, LEAST_WIDTH = 7, 0.002
#: A module's colour is strongest where its time changed by this share, and it covers the paper as far as text on it
#: stays legible (tests/report/test_colours.py); what changed by less than 1 % has none.
FULL_CHANGE, STRONGEST, FAINTEST, NO_CHANGE = 0.5, 0.5, 0.08, 0.01


def waterfall_chart(comparison: Comparison, id_: str = "waterfall", names: Names = LETTERS) -> Chart | None:
    """What makes the change from A to B, from a zero line on; None where there is no waterfall."""
    parts = waterfall_changes(comparison)
    if not parts:
        return None
    a, b = names
    labels = [*(label for label, _ in parts), f"all changes: {b} {MINUS} {a}"]
    changes = [us for _, us in parts]
    # Where each bar ends; the last one begins at zero again.
    ends = list(itertools.accumulate(changes, initial=0.0))
    lowest, highest = min(ends), max(ends)
    unit, scale, _ = scale_of(max(-lowest, highest))
    starts, ends = [*ends[:-1], 0.0], [*ends[1:], ends[-1]]
    texts = [duration_change(us) for us in (*changes, ends[-1])]
    data: dict[str, Any] = {
        "type": "waterfall",
        "orientation": "h",
        "y": list(range(len(labels))),
        "x": [us / scale for us in (*changes, ends[-1])],
        "measure": [*("relative" for _ in parts), "total"],
        "text": texts,
        "textposition": "none",
        "customdata": [escaped(label) for label in labels],
        "hovertemplate": "%{customdata}: %{text}<extra></extra>",
        "increasing": {"marker": {"color": "var(--loss)"}},
        "decreasing": {"marker": {"color": "var(--gain)"}},
        "totals": {"marker": {"color": "var(--total)"}},
        "connector": {"line": {"color": "var(--rule)", "width": 1}},
    }
    unjudged = [*_unjudged(comparison, labels, starts, changes, texts, scale)]
    if unjudged:
        # Bars over each other are as wide, and need no names beside those of their rows.
        data["width"] = WATERFALL_WIDTH
    # The figure of each bar stands at its right end: at its left a narrow page has the bar's label.
    span = (highest - lowest) / scale
    layout: dict[str, Any] = {
        "xaxis": {
            "title": {"text": unit},
            "range": [lowest / scale - 0.02 * span, highest / scale + 0.18 * span],
            "zerolinewidth": 2,
        },
        "yaxis": axis_of(labels),
        "annotations": [
            {"text": text, "x": max(start, end) / scale, "y": at} | BESIDE_BAR
            for at, (text, start, end) in enumerate(zip(texts, starts, ends, strict=True))
        ],
    }
    if unjudged:
        layout["showlegend"] = False
    title = f"What changed from {a} to {b}, {unit}, {shared_scope(comparison, names)}"
    return drawn(id_, title, (data, *unjudged), layout, PER_BAR * len(labels) + MARGINS)


def _unjudged(
    comparison: Comparison,
    labels: Sequence[str],
    starts: Sequence[float],
    changes: Sequence[float],
    texts: Sequence[str],
    scale: float,
) -> Iterator[dict[str, Any]]:
    """Bars of communication, over those of the waterfall: their change is neither gain nor loss."""
    parts = comparison.waterfall.parts if comparison.waterfall else ()
    own = {part_label(part) for part in parts if part.label == "exposed_communication"}
    at = [index for index, label in enumerate(labels) if label in own]
    if at:
        yield {
            "type": "bar",
            "orientation": "h",
            "y": at,
            "x": [changes[index] / scale for index in at],
            "base": [starts[index] / scale for index in at],
            "width": WATERFALL_WIDTH,
            "customdata": [[escaped(labels[index]), texts[index]] for index in at],
            "hovertemplate": "%{customdata[0]}: %{customdata[1]}<extra></extra>",
            "marker": {"color": "var(--kind-communication)"},
        }


def waterfall_bars(comparison: Comparison, names: Names = LETTERS) -> Bars | None:
    """The same in characters."""
    parts = waterfall_changes(comparison)
    rows = tuple((label, duration_change(us), us) for label, us in parts)
    title = f"What changed from {names[0]} to {names[1]}, {shared_scope(comparison, names)}"
    return Bars(title, rows) if rows else None


def call_chart(comparison: Comparison) -> Chart | None:
    """One call of both sides, divided into what it consists of; None where the sides have no common scale."""
    sides = (comparison.a, comparison.b)
    found = call_times((comparison,), sides)
    return _calls("call", "One call", [side.label for side in sides], *found) if found else None


def _calls(id_: str, what: str, names: Sequence[str], basis: str, calls: Sequence[CallTime]) -> Chart:
    unit, scale, decimals = scale_of(max(each.whole_us for each in calls))
    segments = _segments(calls)
    figures = [[getattr(each, name) / scale for each in calls] for name, *_ in segments]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": words,
            "y": list(range(len(calls))),
            "x": values,
            "text": [f"{value:,.{decimals}f}" for value in values],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "insidetextfont": {"color": f"var(--{text})"},
            "marker": {"color": f"var(--{colour})", "line": {"color": f"var(--{edge})", "width": 1}},
            "customdata": [escaped(name) for name in names],
            "hovertemplate": f"%{{customdata}}, {words}: %{{text}} {unit}<extra></extra>",
        }
        for (_, words, colour, edge, text), values in zip(segments, figures, strict=True)
    ]
    wholes = [f"{each.whole_us / scale:,.{decimals}f} {unit}" for each in calls]
    labels = [f"{name}<br>{whole}" for name, whole in zip(told_apart(names), wholes, strict=True)]
    layout = {
        "barmode": "stack",
        "showlegend": True,
        "xaxis": {"title": {"text": unit}, "rangemode": "tozero"},
        "yaxis": axis_of(names) | {"ticktext": labels},
        # A figure that does not fit into its bar is only told on pointing at it.
        "uniformtext": {"mode": "hide", "minsize": 10},
    }
    title = f"{what}, {unit} ({'unprofiled' if basis == 'unprofiled' else 'with profiler'})"
    return drawn(id_, title, data, layout, PER_CALL * len(calls) + MARGINS + LEGEND, "; ".join(_told(names, calls)))


def _segments(calls: Sequence[CallTime]) -> list[tuple[str, str, str, str, str]]:
    """Communication has none where there is no communication."""
    communicates = any(call.communication_us for call in calls)
    return [each for each in SEGMENTS if each[0] != "communication_us" or communicates]


def _told(names: Sequence[str], calls: Sequence[CallTime]) -> Iterator[str]:
    """The figures, for who does not see them."""
    for name, call in zip(names, calls, strict=True):
        parts = ", ".join(f"{words} {duration(getattr(call, segment))}" for segment, words, *_ in _segments(calls))
        yield f"{name} {duration(call.whole_us)}: {parts}"


class _Cell(Struct, frozen=True):
    """A module's place in the icicle."""

    module: ModuleTime
    name: str
    level: int
    start_us: float

    @property
    def change(self) -> float:
        return self.module.delta_us / self.module.a_us


def module_chart(comparison: Comparison) -> Chart | None:
    """GPU time by module, the whole model above its parts, as wide as A's time is; None where no module is known."""
    root = comparison.modules
    if root is None or root.a_us <= 0:
        return None
    a, b = comparison.a.label, comparison.b.label
    apart = any(group.kind == "communication" for group in comparison.groups)
    cells = list(
        _cells(root, "GPU kernels but communication" if apart else "all GPU kernels", 0, 0.0, LEAST_WIDTH * root.a_us)
    )
    unit, scale, _ = scale_of(root.a_us)
    kinds = (
        ("less GPU time", "gain", [each for each in cells if each.change <= -NO_CHANGE]),
        ("more", "loss", [each for each in cells if each.change >= NO_CHANGE]),
        (f"within {percent(NO_CHANGE, 0)}", "total", [each for each in cells if abs(each.change) < NO_CHANGE]),
    )
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": words,
            "x": [each.module.a_us / scale for each in some],
            "base": [each.start_us / scale for each in some],
            "y": [each.level for each in some],
            "width": 0.96,
            "text": [escaped(f"{each.name} {_share(each.change)}") for each in some],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "insidetextfont": {"color": "var(--ink)"},
            "textangle": 0,
            "customdata": [[escaped(each.module.path or each.name), _module_words(each.module)] for each in some],
            "hovertemplate": "%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            "marker": {
                "color": f"var(--{colour})",
                "opacity": [_strength(each.change) for each in some],
                "line": {"color": "var(--paper)", "width": 1},
            },
        }
        for words, colour, some in kinds
        if some
    ]
    levels = 1 + max(each.level for each in cells)
    layout = {
        "barmode": "overlay",
        "bargap": 0,
        "showlegend": True,
        "xaxis": {"title": {"text": unit}, "range": [0, root.a_us / scale], "showgrid": False},
        "yaxis": {"visible": False, "tickvals": list(range(levels))},
        "uniformtext": {"mode": "hide", "minsize": 10},
    }
    title = f"GPU time by module: as wide as in {a}, coloured by the change to {b}"
    return drawn("modules", title, data, layout, PER_MODULE * levels + MARGINS + LEGEND)


def _cells(module: ModuleTime, name: str, level: int, start_us: float, least_us: float) -> Iterator[_Cell]:
    """The module, and below it those that it holds, the longest first."""
    yield _Cell(module, name, level, start_us)
    for child in sorted(module.children, key=lambda each: -each.a_us) if level + 1 < MOST_LEVELS else ():
        if child.a_us >= least_us:
            shown = child.path.removeprefix(f"{module.path}.")
            yield from _cells(child, shown, level + 1, start_us, least_us)
        start_us += child.a_us


def _share(change: float) -> str:
    return f"{change * 100:+.0f} %".replace("-", MINUS)


def _strength(change: float) -> float:
    return round(FAINTEST + (STRONGEST - FAINTEST) * min(abs(change) / FULL_CHANGE, 1.0), 3)


def _module_words(module: ModuleTime) -> str:
    times = f"{duration(module.a_us)} \N{RIGHTWARDS ARROW} {duration(module.b_us)}"
    kernels = f"{count(module.a_kernels)} \N{RIGHTWARDS ARROW} {count(module.b_kernels)} kernels"
    return f"{times}, {change_with_share(module.delta_us, module.a_us)}, {kernels}"


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
    values = {label: [each.us / 1e3 for each in figures] for label, figures in us.items()}
    how = "as recorded" if profiled else "unprofiled calls"
    title = f"Idle time by cause in milliseconds, {how}, {scope_of(sides)}"
    ends = [
        {
            "array": [(each.high_us - each.us) / 1e3 for each in figures],
            "arrayminus": [(each.us - each.low_us) / 1e3 for each in figures],
        }
        for figures in zip(*us.values(), strict=True)
    ]
    exact = not any(each.half_us for figures in us.values() for each in figures)
    return _grouped("idle-causes", title, values, sides, "ms", () if exact else ends) if values else None


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


def _grouped(
    id_: str,
    title: str,
    values: dict[str, list[float]],
    sides: Sides,
    unit: str,
    ends: Sequence[dict[str, list[float]]] = (),
) -> Chart:
    """A bar of each side for each label, the first label on top. `ends` are what each side's figures may be."""
    # No two sides look alike.
    colours = [{"color": f"var(--side-{hue})"} for hue in HUES]
    looks: list[dict[str, Any]] = [*colours, *({**each, "pattern": {"shape": "/"}} for each in colours * 2)]
    labels = list(values)
    names = told_apart([side_name(letter, side) for letter, side in sides])
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": names[index],
            "y": list(range(len(labels))),
            "customdata": [escaped(label) for label in labels],
            "x": [figures[index] for figures in values.values()],
            "marker": looks[ascii_lowercase.index((letter or "b").lower())],
            "hovertemplate": f"%{{customdata}}: %{{x:,.3~f}} {unit}<extra>{letter}</extra>",
            **({"error_x": ENDS | ends[index]} if ends else {}),
        }
        for index, (letter, _) in enumerate(sides)
    ]
    layout = {
        "barmode": "group",
        # Which of several sides a lone one is.
        "showlegend": sides[0][0] != "",
        "xaxis": {"title": {"text": unit}, "rangemode": "tozero"},
        "yaxis": axis_of(labels),
    }
    return drawn(id_, title, data, layout, (BAR_APART + PER_SIDE * len(sides)) * len(labels) + MARGINS + LEGEND)
