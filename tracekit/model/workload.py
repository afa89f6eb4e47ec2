"""What can be run, described without importing torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """One line of `tracekit workloads`. `sizes` maps a size's name to what it is, largest first. `scopes` maps what
    `--scope` accepts to what it compiles, the default first. `module` is where it is built, imported only to run it.
    `memory_gib` is what each size needs on the device, weights and activations, at its default settings."""

    name: str
    title: str
    module: str
    sizes: dict[str, str]
    memory_gib: dict[str, float]
    scopes: dict[str, str]
    fullgraph: bool
    extra: str
