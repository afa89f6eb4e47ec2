"""What GPU memory each side took."""

from __future__ import annotations

from collections.abc import Callable

from tracekit.model.comparison import Side
from tracekit.model.memory import FormMemory
from tracekit.numbers import size, size_change
from tracekit.report.document import Column, Table
from tracekit.report.sides import Sides, side_name

ROWS: dict[str, Callable[[FormMemory], int | None]] = {
    "Held before the form ran": lambda memory: memory.before_bytes,
    "Steady calls, allocated": lambda memory: memory.steady.allocated_bytes if memory.steady else None,
    "Steady calls, reserved": lambda memory: memory.steady.reserved_bytes if memory.steady else None,
    "Warm-up with compilation, allocated": lambda memory: memory.warmup.allocated_bytes,
    "Warm-up with compilation, reserved": lambda memory: memory.warmup.reserved_bytes,
    "CUDA-graph pools, the form's own": lambda memory: memory.graph_pool_bytes,
    "CUDA-graph pools of forms before it": lambda memory: memory.others_pool_bytes,
}

NOTE = (
    "Peaks. Allocated is what tensors held, reserved what torch had taken from the driver for them. All of it counts "
    "the weights, which both forms share, and whatever forms that ran before have left (workspaces of libraries, "
    "buffers); autotuning in processes of its own and what libraries take past torch is not seen."
)


def memory_table(sides: Sides) -> Table | None:
    """Peak memory of warm-up and of steady calls, and graph pools; None where no side was watched."""
    found = [_memory(side) for _, side in sides]
    if not any(found):
        return None
    columns = (Column("GPU memory", numeric=False), *(Column(side_name(*each)) for each in sides))
    change = (Column("Change"),) if len(sides) == 2 else ()
    rows = tuple(_row(label, [figure(each) if each else None for each in found]) for label, figure in ROWS.items())
    return Table("GPU memory", (*columns, *change), rows, NOTE)


def _memory(side: Side) -> FormMemory | None:
    return side.form.memory if side.form else None


def _row(label: str, figures: list[int | None]) -> tuple[str, ...]:
    """The figures, and of two their change."""
    row = (label, *map(size, figures))
    if len(figures) != 2:
        return row
    one, other = figures
    return *row, size_change(other - one if one is not None and other is not None else None)
