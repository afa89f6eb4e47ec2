"""A trace and what was found in it, as rows of slices and curves for a viewer."""

from tracekit.analysis.drawing.arrows import draw_arrows
from tracekit.analysis.drawing.panel import draw_panel, known_of

__all__ = ["draw_arrows", "draw_panel", "known_of"]
