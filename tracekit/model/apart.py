"""How two sides that were timed in separate runs compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tracekit.model.bounded import doc


@dataclass(frozen=True, slots=True)
class ApartChange:
    """How two sides that were timed in separate runs compare."""

    ratio: Annotated[float, doc("How many times as long as A's call B's takes.")]
    low: Annotated[float, doc("The least it may be, if nothing but the sides differed between the runs.")]
    high: Annotated[float, doc("The most it may be.")]
    assumed: Annotated[str | None, doc("What of that was not measured, in words; None where all was.")]
    beyond: Annotated[bool, doc("Beyond all of that, and what a gate holds against anybody (docs/gate.md).")]
