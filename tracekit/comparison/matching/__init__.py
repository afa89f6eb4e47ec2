"""Which activities of two sides do the same work, told by operators, shapes, order and names."""

from tracekit.comparison.matching.aligning import align
from tracekit.comparison.matching.cell import Cell, check_partition
from tracekit.comparison.matching.lending import lacks_operators, lend_operators

__all__ = ["Cell", "align", "check_partition", "lacks_operators", "lend_operators"]
