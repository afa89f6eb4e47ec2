"""What was run, on which machine, with which software, and the state of the GPU meanwhile."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from tracekit.model.gpu import GpuState
from tracekit.model.option import BY_NAME, OPTIONS
from tracekit.model.run import UNKNOWN_OF_PROGRAM, Run
from tracekit.names import clipped
from tracekit.numbers import MISSING, duration, percent, size
from tracekit.report.document import Table, columns, filled_table
from tracekit.report.words.common import Sides, side_name
from tracekit.shell import variable_words

#: So many modules are named that are compiled in a part.
NAMED = 4

#: What the manifest calls otherwise than its option, and what is its own.
WORDS = {each.name: each.word for each in OPTIONS} | {
    "fast_processor": BY_NAME["use_fast"].word,
    "iterations": "timed calls, minimum",
}

GPU_FIGURES = {
    "SM clock": ("sm_clock_mhz", "MHz"),
    "Memory clock": ("memory_clock_mhz", "MHz"),
    "Power": ("power_w", "W"),
    "Temperature": ("temperature_c", "°C"),
}

#: In place of a figure that was counted once for both sides.
SAME = "as A"
GPU_NOTE = "Before → between (range of samples) → after the timed calls. From the driver, at most 5 samples a second."


def settings_table(sides: Sides) -> Table | None:
    """The settings of the runs; None for bare traces."""
    found: list[dict[str, object]] = []
    for _, side in sides:
        fields = msgspec.to_builtins(side.settings) if side.settings else {}
        if side.settings:
            fields |= fields.pop("generation") or {}
            own = fields.pop("own")
            fields["variables"] = variable_words(side.settings.variables) or None
            if own and own["options"]:
                fields["options"] = " ".join(own["options"])
            if side.settings.is_of_program:
                fields = {name: value for name, value in fields.items() if name not in UNKNOWN_OF_PROGRAM}
        found.append({WORDS.get(name, name): value for name, value in fields.items()})
    return _compared("Settings", sides, found)


def environment_table(sides: Sides) -> Table | None:
    """Machine and software; None for bare traces."""
    found: list[dict[str, object]] = [
        {
            "GPU": environment.gpu,
            "GPU memory": size(environment.gpu_memory_bytes) if environment.gpu_memory_bytes else None,
            "driver": environment.driver,
            "CUDA": environment.cuda,
            "CPU": environment.cpu,
            "CPU threads": environment.cpu_threads,
            "platform": environment.platform,
            "Python": environment.python,
            **environment.packages,
            "git commit": environment.git_commit,
            "float32_matmul_precision": environment.float32_matmul_precision,
        }
        if (environment := side.environment)
        else {}
        for _, side in sides
    ]
    return _compared("Machine and software", sides, found)


def _compared(caption: str, sides: Sides, values: list[dict[str, object]]) -> Table | None:
    """One column where all sides agree in everything; else one for each, of what they do not agree in, and the rest
    below."""
    words = {True: "yes", False: "no"}
    found = [
        {
            name: words[value] if isinstance(value, bool) else clipped(str(value), 300)
            for name, value in each.items()
            if value is not None
        }
        for each in values
    ]
    if not any(found):
        return None
    names = tuple(dict.fromkeys(name for each in found for name in each))
    if all(each == found[0] for each in found):
        shared = {1: "Value", 2: "Both sides"}.get(len(sides), "All sides")
        return Table(caption, columns("Name", shared), tuple((name, found[0][name]) for name in names))
    rows = [(name, *(each.get(name, MISSING) for each in found)) for name in names]
    differ = tuple(row for row in rows if len(set(row[1:])) > 1)
    alike = "; ".join(f"{row[0]} {row[1]}" for row in rows if row not in differ)
    heads = columns("Name", *(side_name(*each) for each in sides))
    return Table(caption, heads, differ, f"The same for all: {alike}." if alike else "")


def component_table(run: Run) -> Table | None:
    """The parts of the model, and which of them were compiled or how much of each; None when the run lists none."""
    rows = []
    for part in run.components:
        if not part.compiled:
            how = "eager"
        elif part.compiled_parameters is None or part.compiled_parameters >= part.parameters:
            how = "compiled"
        else:
            more = f" and {len(part.compiled_parts) - NAMED} more" if len(part.compiled_parts) > NAMED else ""
            named = clipped(f"{', '.join(part.compiled_parts[:NAMED])}{more}", 300)
            how = f"{percent(part.compiled_parameters / part.parameters)} compiled: {named}"
        rows.append((part.name, f"{part.parameters / 1e6:,.1f} million", how))
    heads = (*columns("Component", figures=("Parameters",)), *columns("Compiled"))
    return filled_table("Model components", heads, rows)


def gpu_state_table(sides: Sides) -> Table | None:
    """At which clocks, power and temperature the GPU was before, between and after the timed calls, and beside whom;
    None where no side was watched."""
    states = [side.form.gpu_state if side.form else None for _, side in sides]
    if not any(states):
        return None
    figures = [dict(_gpu_figures(state)) if state else {} for state in states]
    labels = next(tuple(each) for each in figures if each)
    rows = [(label, *(each.get(label, MISSING) for each in figures)) for label in labels]
    # The driver's counters go on whichever form is run: of one run there is one figure for both.
    held, counted = [], [(state.slowed_us, state.timed_us) if state else (None, None) for state in states]
    for at, (slowed_us, timed_us) in enumerate(counted):
        limits = [f"{limit} limit for {duration(us)}" for limit, us in (slowed_us or {}).items() if us]
        of = f" of {duration(timed_us)}" if timed_us and limits else ""
        told = MISSING if slowed_us is None else f"{', '.join(limits) or 'never'}{of}"
        held.append(SAME if at and counted[0] == counted[at] and told != MISSING else told)
    rows.append(("Throttled during timing, whole run", *held))
    heads = columns("GPU", *(side_name(*each) for each in sides))
    return Table("GPU during timing", heads, tuple(rows), GPU_NOTE)


def _gpu_figures(state: GpuState) -> Iterator[tuple[str, str]]:
    for label, (field, unit) in GPU_FIGURES.items():
        parts = [
            _range(getattr(each, field) for each in state.samples if each.moment == moment)
            for moment in ("before", "during", "after")
        ]
        known = any(part != MISSING for part in parts)
        yield label, f"{' → '.join(parts)} {unit}" if known else MISSING
    yield "Power limit", f"{state.power_limit_w:,.0f} W" if state.power_limit_w else MISSING
    # The driver's reasons at the samples between this form's own calls.
    told = [sample.slowed_by for sample in state.during() if sample.slowed_by is not None]
    numbers = Counter(reason for reasons in told for reason in reasons)
    reasons = ", ".join(f"{reason} ({number} of {len(told)} samples)" for reason, number in numbers.items())
    yield "Active limits between calls", (reasons or "none") if told else MISSING
    yield "Other processes", _range(sample.other_processes for sample in state.samples)


def _range(figures: Iterable[float | None]) -> str:
    known = [figure for figure in figures if figure is not None]
    return " to ".join(dict.fromkeys(f"{end:,.0f}" for end in (min(known), max(known)))) if known else MISSING
