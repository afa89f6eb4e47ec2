"""The tables of a picture: slices of a track, made of what is known one by one, and arrows between them."""

from collections.abc import Iterable
from typing import Any

import msgspec
import polars as pl

SCHEMA: dict[str, type[pl.DataType]] = {
    "kind": pl.String,
    "name": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "details": pl.String,
    "key": pl.Int64,
}

ARROWS: dict[str, type[pl.DataType]] = {
    "name": pl.String,
    "a_panel": pl.Int64,
    "a_key": pl.Int64,
    "b_panel": pl.Int64,
    "b_key": pl.Int64,
}

Row = tuple[str, str, int, int, str | None, int | None]


def as_slices(rows: Iterable[Row]) -> pl.DataFrame:
    """By start, longer first."""
    return in_order(pl.DataFrame(list(rows), schema=SCHEMA, orient="row"))


def in_order(slices: pl.DataFrame) -> pl.DataFrame:
    return slices.select(list(SCHEMA)).sort("start_ns", "end_ns", descending=[False, True], maintain_order=True)


def details(**known: Any) -> str | None:
    """A JSON object of what is known; `launched_by` stands in it as `launched by`."""
    kept = {key.replace("_", " "): value for key, value in known.items() if value not in (None, "", (), {})}
    return msgspec.json.encode(kept).decode() if kept else None
