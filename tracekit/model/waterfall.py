"""From A's time to B's, part by part. All figures are per step."""

from typing import Literal

from msgspec import Struct

from tracekit.model.groups import Label

#: Whether figures stand on unprofiled wall times, or on what the recording shows for want of them.
Basis = Literal["unprofiled", "trace"]
#: GPU work, communication that had the GPU to itself (waiting for other ranks included), or idle time.
PartKind = Literal["gpu", "communication", "idle"]


class WaterfallPart(Struct, frozen=True):
    """A change from A to B."""

    kind: PartKind
    label: Label  #: A group's label, an idle cause, or a code.
    delta_us: float
    recorded_delta_us: float | None = None  #: An idle part's change, as recorded; else None.
    low_us: float | None = None  #: What an idle part's change is at least; None where that is not known.
    high_us: float | None = None  #: At most; None likewise.

    @property
    def has_sign(self) -> bool:
        """Whether it is not known to be less and more."""
        return self.low_us is None or self.high_us is None or self.low_us >= 0 or self.high_us <= 0


class Waterfall(Struct, frozen=True):
    """a_us + the parts + residual_us = b_us."""

    basis: Basis  #: Whether the ends are unprofiled wall times or the trace's.
    a_us: float
    b_us: float
    parts: tuple[WaterfallPart, ...]
    residual_us: float
