"""From each kernel of one side to the kernel of the other that does its work."""

from __future__ import annotations

import polars as pl

from tracekit.model.picture import MatchedWork, Matching, Panel

SCHEMA: dict[str, type[pl.DataType]] = {"name": pl.String, "a_key": pl.Int64, "b_key": pl.Int64}


def draw_arrows(matching: Matching | None, a: Panel, b: Panel) -> pl.DataFrame:
    """Columns `ARROW_COLUMNS`; an arrow's name is the kind of its group. None without a matching.

    Where a piece has as many kernels on both sides they are paired in their order; else every kernel of A leads to the
    first of B, as which of them does what nobody knows. The first step of A is tied to the first of B, and so on.
    """
    if matching is None:
        return pl.DataFrame(schema=SCHEMA)
    pairs = [pair for work in matching.work if work.a and work.b for pair in _pairs(work)]
    table = pl.DataFrame(pairs, schema=SCHEMA, orient="row")
    lengths = len(matching.a.activities), len(matching.b.activities)
    a_keys, b_keys = _keys(a), _keys(b)
    repeats = min(_repeats(a_keys, lengths[0]), _repeats(b_keys, lengths[1]))
    every = [
        table.with_columns(pl.col("a_key") + repeat * lengths[0], pl.col("b_key") + repeat * lengths[1])
        for repeat in range(repeats)
    ]
    arrows = pl.concat([table.clear(), *every])
    return arrows.filter(pl.col("a_key").is_in(a_keys.implode()) & pl.col("b_key").is_in(b_keys.implode()))


def _pairs(work: MatchedWork) -> list[tuple[str, int, int]]:
    kind = work.group.kind
    if len(work.a) == len(work.b):
        return [(kind, one, other) for one, other in zip(work.a, work.b, strict=True)]
    return [(kind, one, work.b[0]) for one in work.a]


def _keys(panel: Panel) -> pl.Series:
    return pl.concat(
        [pl.Series("key", [], dtype=pl.Int64), *(track.slices["key"].drop_nulls() for track in panel.tracks)]
    )


def _repeats(keys: pl.Series, length: int) -> int:
    last = keys.max()
    return int(last) // length + 1 if isinstance(last, int) and length else 0
