"""Did recording slow a side down so much that its trace misleads?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding

#: A recorded step this much slower than an unprofiled call is worth a line.
WORTH_SAYING = 1.1


def find_profiler_distortion(comparison: Comparison) -> Finding | None:
    """Found when a recorded step took over 10 % longer than the unprofiled call."""
    slowed = {
        side.label: slowdown
        for side in (comparison.a, comparison.b)
        if (slowdown := side.recorded_ratio) is not None and slowdown > WORTH_SAYING
    }
    if not slowed:
        return None
    on_gpu = comparison.a.analysis.gpu is not None or comparison.b.analysis.gpu is not None
    return Finding(
        code="profiler_distortion",
        severity="info",
        facts={
            "slowed": [{"side": label, "slowdown": slowdown} for label, slowdown in slowed.items()],
            "on_gpu": on_gpu,
        },
        saving_us=None,
    )
