"""Links between eager and compiled work, from what torch itself says of where each came from."""

from tracekit.comparison.provenance.linking import Link, Linked, link

__all__ = ["Link", "Linked", "link"]
