"""One side by itself: what its page tells beside the figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.model.comparison import Bound, Finding, Side


@dataclass(frozen=True, slots=True)
class Alone:
    """`bound` is what holds the side back, None without GPU figures. `findings` are those that need no other side to
    compare with. `warnings` are what a reader must know before believing the figures; `grave` those of them that stand
    at the top."""

    side: Side
    bound: Bound | None
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    grave: tuple[str, ...]
