"""Did recording slow a side down so much that its trace misleads?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding
from tracekit.numbers import times

#: A recorded step this much slower than an unprofiled call is worth a line.
WORTH_SAYING = 1.1

TAKEN_ON_GPU = (
    "Wall times here are unprofiled ones; the recordings give GPU busy time, which hardly changes, and how idle time "
    "divides into causes."
)
TAKEN_ON_CPU = "Wall times here are unprofiled ones; operator times are as recorded, and longer than the true ones."


def find_profiler_distortion(comparison: Comparison) -> Finding | None:
    """Found when a recorded step took over 10 % longer than the unprofiled call."""
    slowed = dict.fromkeys(
        f"{side.label}: a recorded step took {times(slowdown)} as long as an unprofiled call"
        for side in (comparison.a, comparison.b)
        if (slowdown := side.recorded_ratio) is not None and slowdown > WORTH_SAYING
    )
    if not slowed:
        return None
    on_gpu = comparison.a.analysis.gpu is not None or comparison.b.analysis.gpu is not None
    return Finding(
        code="profiler_distortion",
        severity="info",
        title="Recording slowed the calls it recorded",
        evidence=f"{'; '.join(slowed)}. {TAKEN_ON_GPU if on_gpu else TAKEN_ON_CPU}",
        saving_us=None,
        advice=None,
    )
