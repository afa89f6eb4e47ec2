"""May figures of one recording be held against those of the other?"""

from __future__ import annotations

from tracekit.model.comparison import Side

WINDOWS = {"steps": "its marked steps", "span": "a named span", "whole": "the whole recording"}
WHOLE = (
    "the recordings mark no steps, and nobody knows how many each holds (--window NAME reads a span that is marked in"
    " both; torch.profiler's step() marks steps)"
)


def find_unlike_windows(a: Side, b: Side) -> str | None:
    """Why a change between what was recorded of the sides says nothing of the code; None where it does.

    Two whole recordings may hold any number of steps each: half the kernels may be a fifth of the steps.
    """
    one, other = a.analysis.window.kind, b.analysis.window.kind
    if one != other:
        return f"A was read over {WINDOWS[one]} and B over {WINDOWS[other]}, which do not mean the same (--window)"
    return WHOLE if one == "whole" else None
