"""What was run, on which machine, with which software."""

from __future__ import annotations

import msgspec

from tracekit.model.comparison import Comparison, Side
from tracekit.model.run import Component, Environment, Run, Settings
from tracekit.numbers import MISSING, percent, size
from tracekit.report.names import clipped, printable
from tracekit.report.table import Column, Table

#: So many modules are named that are compiled in a part.
NAMED = 4

SETTINGS = {
    "batch_size": "batch size",
    "steps": "denoising steps",
    "max_new_tokens": "new tokens",
    "fast_processor": "fast processor",
    "iterations": "timed calls, at least",
}


def settings_table(comparison: Comparison) -> Table | None:
    """The settings of the runs; None for bare traces."""
    return _compared("Settings", comparison, _settings(comparison.a), _settings(comparison.b))


def environment_table(comparison: Comparison) -> Table | None:
    """Machine and software; None for bare traces."""
    a, b = comparison.a, comparison.b
    return _compared("Machine and software", comparison, _environment(a), _environment(b))


def _compared(caption: str, comparison: Comparison, a: dict[str, str], b: dict[str, str]) -> Table | None:
    """One column where both sides agree in everything, two where they do not."""
    if not (a or b):
        return None
    names = tuple(dict.fromkeys((*a, *b)))
    if a == b:
        both = (Column("Name", numeric=False), Column("Both sides", numeric=False))
        return Table(caption, both, tuple((name, a[name]) for name in names))
    labels = (f"A: {comparison.a.label}", f"B: {comparison.b.label}")
    columns = (Column("Name", numeric=False), *(Column(label, numeric=False) for label in labels))
    return Table(caption, columns, tuple((name, a.get(name, MISSING), b.get(name, MISSING)) for name in names))


def _settings(side: Side) -> dict[str, str]:
    settings: Settings | None = side.settings
    if settings is None:
        return {}
    fields = msgspec.to_builtins(settings)
    fields |= fields.pop("generation") or {}
    own = fields.pop("own")
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
