"""How two sides that were timed in separate runs compare."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ApartChange:
    """How many times as long B's call takes as A's: `ratio`, and what it may really be, `low` to `high`, if nothing but
    the sides differed between the runs. `assumed` is what of that was not measured, in words; None where all was.
    `beyond` is whether the ratio is beyond all of that, and beyond what a gate holds against anybody (docs/gate.md)."""

    ratio: float
    low: float
    high: float
    assumed: str | None
    beyond: bool
