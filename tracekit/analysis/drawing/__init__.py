"""A trace and what was found in it, as rows of slices and curves for a viewer."""

from tracekit.analysis.drawing.kernels import ARROWS_ARE, draw_arrows, known_of
from tracekit.analysis.drawing.panel import draw_panel

__all__ = ["ARROWS_ARE", "draw_arrows", "draw_panel", "known_of"]
