"""Chrome/Kineto JSON to Trace and back. The only room that sees raw events."""

from tracekit.tracefile.read import read_trace

__all__ = ["read_trace"]
