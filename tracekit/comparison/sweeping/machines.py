"""Were cells that stand in one row measured on machines that are alike?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.model.run import Environment
from tracekit.model.sweep import CellResult, CellRun
from tracekit.shell import variable_words

#: Packages whose version decides which kernels run and how long the host takes to start them.
PACKAGES = ("torch", "triton", "transformers", "diffusers")


def machine_of(environment: Environment) -> str | None:
    """The GPU's name, or the CPU's where there is none."""
    return environment.gpu or environment.cpu


def find_differences(results: Sequence[CellResult]) -> tuple[str, ...]:
    """What is not the same on all machines that these cells were measured on: `driver: 580.1, 590.2`.

    A host cannot be told by name, and those of one kind are alike: it is what they have that counts. What a cell does
    not tell is taken to be as in the others.
    """
    found: dict[str, dict[str, None]] = {}
    for result in results:
        if result.run is not None:
            for what, value in _telling(result.run):
                found.setdefault(what, {})[value] = None
    return tuple(f"{what}: {', '.join(values)}" for what, values in found.items() if len(values) > 1)


def _telling(run: CellRun) -> Iterator[tuple[str, str]]:
    environment = run.environment
    told = {"CPU": environment.cpu, "driver": environment.driver, "Python": environment.python}
    told |= {name: environment.packages.get(name) for name in PACKAGES}
    told["precision of float32 products"] = environment.float32_matmul_precision
    told["variables"] = variable_words(run.settings.variables) or "none"
    return ((what, value) for what, value in told.items() if value is not None)
