"""Why the GPU was idle in an unprofiled call, as far as two recordings tell."""

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

#: How many times as long as an unprofiled call a recorded one took at most, where it was measured (H200, torch 2.11):
#: Qwen2.5-VL eager with operators and sizes 3.33, ViT-B compiled with Python stacks too 4.24.
MOST_SLOWED, MOST_SLOWED_WITH_STACKS = 3.35, 4.25


class Between(Struct, frozen=True):
    """A figure in microseconds, and what else it may be."""

    us: float
    low_us: float
    high_us: float

    @property
    def half_us(self) -> float:
        """What stands after a ±."""
        return (self.high_us - self.low_us) / 2

    @property
    def has_sign(self) -> bool:
        """Whether it is known to be no less than 0, or no more."""
        return self.low_us >= 0 or self.high_us <= 0


NOTHING = Between(0.0, 0.0, 0.0)


class IdleEstimate(Struct, frozen=True):
    """Idle time per step by cause, in microseconds: of each gap the length without what recording added, and the causes
    of the same gap in the recording that tells them (docs/idle.md). What the causes leave of the call's idle time is
    the residual: it is never spread over them."""

    causes: dict[str, Between]  #: In the order of IDLE_CAUSES; those without time even at most are left out.
    after_sync_us: dict[str, float] = field(default_factory=dict)  #: The part after a wait in which the GPU ran dry.
    unaligned_us: float = 0.0  #: The part whose calls differ between the recordings: divided as all of the step is.
    cost_measured: bool = False  #: Whether this run measured what recording adds; else that is assumed.

    def within(self, whole_us: float, doubt_us: float) -> "IdleEstimate":
        """The same, where it is known that all causes together are parts of `whole_us`, give or take `doubt_us`: none
        is more than that, and likely none is more than the others at their lows leave of it. Lows that make more are
        wrong: then each may be 0. What causes make in all may still be more."""
        lows_us = math.fsum(each.low_us for each in self.causes.values())
        are_wrong = lows_us > whole_us

        def part(each: Between) -> Between:
            low_us = 0.0 if are_wrong else each.low_us
            us = max(min(each.us, whole_us if are_wrong else whole_us - (lows_us - low_us)), low_us)
            return Between(us, low_us, max(min(each.high_us, whole_us + doubt_us), us))

        causes = {cause: part(each) for cause, each in self.causes.items()}
        # As large a share of each cause as before.
        after = {cause: us * causes[cause].us / self.causes[cause].us for cause, us in self.after_sync_us.items() if us}
        unaligned_us = min(self.unaligned_us, whole_us)
        return replace(self, causes=causes, after_sync_us=after, unaligned_us=unaligned_us)

    def largest(self, residual_us: float | None) -> str | None:
        """The cause with most, where its low is above the high of every other, and above what none explains; None where
        that is not known."""
        if not self.causes:
            return None
        first = max(self.causes, key=lambda cause: self.causes[cause].us)
        others = (each.high_us for cause, each in self.causes.items() if cause != first)
        return first if self.causes[first].low_us > max(*others, residual_us or 0.0, 0.0) else None


def change_between(a: Between, b: Between) -> Between:
    """B's figure less A's."""
    return Between(b.us - a.us, b.low_us - a.high_us, b.high_us - a.low_us)


def changes_between(a: Mapping[str, Between], b: Mapping[str, Between]) -> dict[str, Between]:
    """The same of each cause that either has."""
    return {cause: change_between(a.get(cause, NOTHING), b.get(cause, NOTHING)) for cause in {**a, **b}}


def sum_between(parts: Iterable[Between]) -> Between:
    """All of them together, and what that is where each is at its low or high."""
    parts = tuple(parts)
    return Between(*(math.fsum(getattr(part, end) for part in parts) for end in ("us", "low_us", "high_us")))
