"""Why do the two sides' calls take different times? The waterfall's change, divided into a few large shares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tracekit.comparison.waterfall import OTHER_KERNELS, OUTSIDE, OVERLAP
from tracekit.model.comparison import Reason, ReasonShare, Side, Verdict, Waterfall, WaterfallPart

#: A share is told from this part of the change on, and one of its parts from this part of the share on.
TOLD = 0.05
NAMED = 0.15
MOST_NAMED = 2
#: Parts that are what is left of others, and name nothing.
REST = (OTHER_KERNELS, OVERLAP, OUTSIDE)


def find_reason(a: Side, b: Side, verdict: Verdict, waterfall: Waterfall | None) -> Reason | None:
    """The shares of GPU work and of waiting, the larger first, and what nothing explains; None where no difference of
    unprofiled times was established, in alternation or beyond what separate runs leave open.

    GPU shares that are no larger than what two recordings of one side differ by are left out, as small ones are.
    """
    if waterfall is None or waterfall.basis != "unprofiled" or not verdict.established:
        return None
    change = waterfall.b_us - waterfall.a_us
    doubt = math.fsum(side.busy_differs_us or 0.0 for side in (a, b))
    shares = (
        _share("gpu", waterfall.parts, max(TOLD * abs(change), doubt)),
        _share("idle", waterfall.parts, TOLD * abs(change)),
    )
    told = sorted((share for share in shares if share is not None), key=lambda share: -abs(share.delta_us))
    unexplained = change - math.fsum(share.delta_us for share in told)
    return Reason(change, tuple(told), unexplained if abs(unexplained) >= TOLD * abs(change) else 0.0)


def _share(kind: str, parts: Iterable[WaterfallPart], least_us: float) -> ReasonShare | None:
    """All parts of a kind, and the largest of them that made it what it is; None where it is no more than that."""
    own = [part for part in parts if part.kind == kind]
    delta = math.fsum(part.delta_us for part in own)
    return ReasonShare("gpu" if kind == "gpu" else "idle", delta, _named(own, delta)) if abs(delta) > least_us else None


def _named(parts: Sequence[WaterfallPart], delta_us: float) -> tuple[WaterfallPart, ...]:
    same_way = [part for part in parts if part.label not in REST and part.delta_us * delta_us > 0]
    large = [part for part in same_way if abs(part.delta_us) >= NAMED * abs(delta_us)]
    return tuple(sorted(large, key=lambda part: -abs(part.delta_us))[:MOST_NAMED])
