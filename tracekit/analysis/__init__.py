"""One question a file: a Trace in, a finding out."""

from tracekit.analysis.analyzing import analyze

__all__ = ["analyze"]
