"""One side by itself: what its page tells beside the figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.model.comparison import Bound, Finding, Side
    from tracekit.model.note import Note


@dataclass(frozen=True, slots=True)
class Alone:
    """`bound` is what holds the side back, None without GPU figures. `findings` are those that need no other side to
    compare with. `notes` are what a reader must know before believing the figures."""

    side: Side
    bound: Bound | None
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
