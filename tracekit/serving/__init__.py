"""Showing a trace in Perfetto: one file, offered from this machine to one page."""
