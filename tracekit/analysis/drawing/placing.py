"""Where in a recording is each activity of a side's sequence?"""

from __future__ import annotations

from itertools import takewhile

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis.launches import in_launch_order
from tracekit.analysis.window import Scope
from tracekit.model.sequence import Sequence

Ints = NDArray[np.int64]


def place_work(scope: Scope, sequence: Sequence | None) -> pl.DataFrame:
    """The window's activities in launch order, each with its `position` in the sequence and the `key` that tells it
    from the same position of other steps. Both are None where the recording did other work than the sequence, which may
    be of another recording of the same form, and where there is no sequence.
    """
    work = in_launch_order(scope)
    positions = np.full(work.height, -1, dtype=np.int64)
    repeats = np.zeros(work.height, dtype=np.int64)
    if sequence is not None and sequence.per_step == 1:
        _place_steps(work, sequence, positions, repeats)
    elif sequence is not None:
        pairs = zip(work["name"].to_list(), sequence.activities, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1].name, pairs))
        positions[:same] = np.arange(same)
    length = len(sequence.activities) if sequence else 0
    keys = np.where(positions >= 0, repeats * length + positions, -1)
    placed = work.with_columns(position=pl.Series(positions), key=pl.Series(keys))
    return placed.with_columns(pl.when(pl.col("position", "key") >= 0).then(pl.col("position", "key")))


def _place_steps(
    work: pl.DataFrame,
    sequence: Sequence,
    positions: Ints,
    repeats: Ints,
) -> None:
    """Every step that did just what the sequence holds."""
    wanted = [each.name for each in sequence.activities]
    names, steps = work["name"].to_list(), work["step"].to_numpy()
    for repeat, step in enumerate(np.unique(steps).tolist()):
        first, last = np.searchsorted(steps, [step, step + 1]).tolist()
        if names[first:last] == wanted:
            positions[first:last] = np.arange(last - first)
            repeats[first:last] = repeat
