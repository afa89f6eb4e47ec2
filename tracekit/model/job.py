"""All ranks of a job, as far as a comparison of one of them must know: a wing finds out what happened on each."""

from __future__ import annotations

from tracekit.model.waterfall import WaterfallPart


class Job:
    """What changed over all ranks of a job, of which both sides of a comparison are one's."""

    slowest: int  #: The rank with most time of its own: its call of B less exposed waiting.

    def exposed_parts(self) -> tuple[WaterfallPart, ...]:
        """What changed exposed communication of the slowest rank; empty where waiting cannot be told from transfer."""
        raise NotImplementedError
