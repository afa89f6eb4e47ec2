"""One question a file: a Trace in, a finding out."""

from tracekit.analysis.analyzing import analyze
from tracekit.analysis.window import holds_window

__all__ = ["analyze", "holds_window"]
