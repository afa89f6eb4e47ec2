"""Which activities of two sides do the same work, told by provenance, operators, shapes, order and names."""

from tracekit.comparison.matching.alignment import align
from tracekit.comparison.matching.cells import lacks_operators, lend_operators
from tracekit.comparison.matching.pairing import Cell, check_partition

__all__ = ["Cell", "align", "check_partition", "lacks_operators", "lend_operators"]
