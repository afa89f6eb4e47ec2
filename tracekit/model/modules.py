"""GPU time by the model's modules, of both sides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModuleTime:
    """A module of the model with all that it holds. Figures are per step, those of `children` included.

    Work that spans modules is the work of the module that holds them all, work of no known module that of the root.
    """

    path: str  #: Dotted, `*` for the numbers of blocks that repeat; empty for the root.
    a_us: float
    b_us: float
    delta_us: float
    a_kernels: float
    b_kernels: float
    groups: tuple[int, ...]  #: Positions in the comparison's `groups` of its own work, the largest change first.
    children: tuple[ModuleTime, ...]  #: The largest change first.
