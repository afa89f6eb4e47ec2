"""What GPU memory each side took."""

from __future__ import annotations

from collections.abc import Callable

from tracekit.model.comparison import Comparison, Side
from tracekit.model.memory import FormMemory
from tracekit.numbers import size, size_change
from tracekit.report.table import Column, Table

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


def memory_table(comparison: Comparison) -> Table | None:
    """Peak memory of warm-up and of steady calls, and graph pools; None where neither side was watched."""
    a, b = _memory(comparison.a), _memory(comparison.b)
    if a is None and b is None:
        return None
    labels = (f"A: {comparison.a.label}", f"B: {comparison.b.label}")
    columns = (Column("GPU memory", numeric=False), *map(Column, labels), Column("Change"))
    return Table("GPU memory", columns, tuple(_row(label, a, b, figure) for label, figure in ROWS.items()), NOTE)


def _memory(side: Side) -> FormMemory | None:
    return side.form.memory if side.form else None


def _row(
    label: str, a: FormMemory | None, b: FormMemory | None, figure: Callable[[FormMemory], int | None]
) -> tuple[str, ...]:
    one, other = (figure(memory) if memory else None for memory in (a, b))
    change = other - one if one is not None and other is not None else None
    return label, size(one), size(other), size_change(change)
