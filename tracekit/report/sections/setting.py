"""What was run, on which machine, with which software."""

from __future__ import annotations

import msgspec

from tracekit.model.comparison import Side
from tracekit.model.run import Component, Environment, Run, Settings
from tracekit.names import clipped, printable
from tracekit.numbers import MISSING, percent, size
from tracekit.report.document import Column, Table
from tracekit.report.sides import Sides, side_name
from tracekit.shell import variable_words

#: So many modules are named that are compiled in a part.
NAMED = 4

SETTINGS = {
    "batch_size": "batch size",
    "steps": "denoising steps",
    "max_new_tokens": "new tokens",
    "fast_processor": "fast processor",
    "iterations": "timed calls, at least",
}


def settings_table(sides: Sides) -> Table | None:
    """The settings of the runs; None for bare traces."""
    return _compared("Settings", sides, [_settings(side) for _, side in sides])


def environment_table(sides: Sides) -> Table | None:
    """Machine and software; None for bare traces."""
    return _compared("Machine and software", sides, [_environment(side) for _, side in sides])


def _compared(caption: str, sides: Sides, found: list[dict[str, str]]) -> Table | None:
    """One column where all sides agree in everything, one for each where they do not."""
    if not any(found):
        return None
    names = tuple(dict.fromkeys(name for each in found for name in each))
    if all(each == found[0] for each in found):
        shared = {1: "Value", 2: "Both sides"}.get(len(sides), "All sides")
        agreed = (Column("Name", numeric=False), Column(shared, numeric=False))
        return Table(caption, agreed, tuple((name, found[0][name]) for name in names))
    columns = (Column("Name", numeric=False), *(Column(side_name(*each), numeric=False) for each in sides))
    return Table(caption, columns, tuple((name, *(each.get(name, MISSING) for each in found)) for name in names))


def _settings(side: Side) -> dict[str, str]:
    settings: Settings | None = side.settings
    if settings is None:
        return {}
    fields = msgspec.to_builtins(settings)
    fields |= fields.pop("generation") or {}
    own = fields.pop("own")
    fields["variables"] = variable_words(settings.variables) or None
    if own and own["options"]:
        fields["options"] = " ".join(own["options"])
    return {SETTINGS.get(name, name): _shown(value) for name, value in fields.items() if value is not None}


def _environment(side: Side) -> dict[str, str]:
    environment: Environment | None = side.environment
    if environment is None:
        return {}
    named = {
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
        "float32 products": environment.float32_matmul_precision,
    }
    return {name: _shown(value) for name, value in named.items() if value is not None}


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clipped(printable(str(value)), 300)


def component_table(run: Run) -> Table | None:
    """The parts of the model and which of them were compiled; None when the run lists none."""
    if not run.components:
        return None
    rows = tuple(
        (
            printable(part.name),
            f"{part.parameters / 1e6:,.1f} million",
            _how_compiled(part),
        )
        for part in run.components
    )
    columns = (Column("Component", numeric=False), Column("Parameters"), Column("When compiling", numeric=False))
    return Table("Parts of the model", columns, rows)


def _how_compiled(part: Component) -> str:
    """`is compiled`, or how much of it is and which modules that is."""
    if not part.compiled:
        return "stays eager"
    if part.compiled_parameters is None or part.compiled_parameters >= part.parameters:
        return "is compiled"
    more = f" and {len(part.compiled_parts) - NAMED} more" if len(part.compiled_parts) > NAMED else ""
    named = f"{', '.join(part.compiled_parts[:NAMED])}{more}"
    return f"{percent(part.compiled_parameters / part.parameters)} is compiled: {clipped(printable(named), 300)}"
