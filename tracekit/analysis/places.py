"""Where in the program was a host call made? The operators, modules and Python functions around it."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis.timeline import Timeline
from tracekit.model.analysis import Place

#: What the profiler calls a module's forward, and the beginning of a function of torch's own.
MODULE = "nn.Module: "
LIBRARY = ("torch/", "<built-in", "<string>", "<frozen", "threading.py", "contextlib.py")
LIBRARY_PARTS = ("/torch/", "\\torch\\")


def find_places(timeline: Timeline, rows: NDArray[np.int64]) -> list[Place | None]:
    """Where each of these rows of the timeline's table was called from; None where nothing of it is recorded."""
    kinds = timeline.table["kind"]
    operators, python = (kinds == "op").to_numpy(), (kinds == "python").to_numpy()
    names = timeline.table["name"]
    if not python.any():
        found = _names(names, _nearest(timeline.parents, rows, operators))
        return [Place(operator, None, None) if operator else None for operator in found]
    modules = python & names.str.starts_with(MODULE).to_numpy()
    lines = python & names.str.contains("): ", literal=True).to_numpy()
    own = lines & ~_of_libraries(names)
    columns = [_names(names, _nearest(timeline.parents, rows, each)) for each in (operators, modules, own, lines)]
    return [_place(operator, module, mine or line) for operator, module, mine, line in zip(*columns, strict=True)]


def _place(operator: str | None, module: str | None, line: str | None) -> Place | None:
    if operator is None and module is None and line is None:
        return None
    return Place(operator, module.removeprefix(MODULE) if module else None, line)


def _of_libraries(names: pl.Series) -> NDArray[np.bool_]:
    distinct = [name for name in names.unique() if _is_library(name)]
    return names.is_in(distinct).to_numpy()


@cache
def _is_library(name: str) -> bool:
    return name.startswith(LIBRARY) or any(part in name for part in LIBRARY_PARTS)


def _nearest(parents: NDArray[np.int64], rows: NDArray[np.int64], wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first wanted event around each row, -1 for none."""
    found = parents[rows]
    while (climbing := (found >= 0) & ~wanted[found]).any():
        found = np.where(climbing, parents[found], found)
    return found


def _names(names: pl.Series, rows: NDArray[np.int64]) -> list[str | None]:
    found = pl.Series(rows)
    return names.gather(found.set(found < 0, None)).to_list()
