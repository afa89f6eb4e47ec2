"""How large the inputs of a piece of work are, in a few characters."""

from __future__ import annotations

from collections.abc import Sequence

from tracekit.comparison.matching.library import is_library
from tracekit.model.sequence import Activity

#: More inputs than these are left out.
MOST_INPUTS = 3


def sizes_of(activities: Sequence[Activity]) -> str:
    """`512x3072, 3072x3072`: the tensors that the main activity's operator was called with; empty where they were not
    recorded. The main one is the library kernel, or else the longest."""
    main = max(activities, key=lambda each: (is_library(each), each.duration_us), default=None)
    if main is None or main.operator is None:
        return ""
    shapes = ["x".join(map(str, dims)) for dims in main.operator.dims if dims]
    return ", ".join([*shapes[:MOST_INPUTS], *(["..."] if len(shapes) > MOST_INPUTS else [])])
