"""One side by itself: what its page tells beside the figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tracekit.model.bounded import doc
from tracekit.model.comparison import Bound, Finding, Side
from tracekit.model.note import Note


@dataclass(frozen=True, slots=True)
class Alone:
    """One side by itself: what its page tells beside the figures."""

    side: Side
    bound: Annotated[Bound | None, doc("What holds the side back; None without GPU figures.")]
    findings: Annotated[tuple[Finding, ...], doc("Those that need no other side to compare with.")]
    notes: Annotated[tuple[Note, ...], doc("What a reader must know before believing the figures.")]
