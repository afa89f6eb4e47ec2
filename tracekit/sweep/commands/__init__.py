"""`tracekit sweep`."""
