"""Why a form is said to be bound by what it is: how large which parts of the call are."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tracekit.model.comparison import Bound, BoundIfSlowed

#: What a part of the call is, as a sentence goes on after its share.
PARTS = {
    "sync": "the GPU had nothing to do because the host had waited for it (synchronising calls)",
    "launch": "the GPU had nothing to do because the host had not launched the next work yet",
    "compile": "the GPU had nothing to do while code was compiled",
    "device": "the GPU paused between pieces of work that had been launched",
    "unseen": "the GPU had nothing to do for a reason that no recording shows",
    "copy": "the GPU copied memory",
    "memory": "the GPU ran kernels that are limited by memory (estimate)",
    "compute": "the GPU ran kernels that are limited by arithmetic (estimate)",
    "neither": (
        "the GPU ran products or convolutions in kernels that reach less than a twentieth of either limit (estimate)"
    ),
}
UNKNOWN_BECAUSE = {
    "no_sizes_in_graphs": "kernels of CUDA graphs are recorded without sizes; --ops lends those of another trace",
    "no_sizes": "the sizes of their inputs were not recorded; record_shapes=True records them",
    "unknown_device": "what this device can do at most is not known here",
    "sizes_do_not_tell": "the recorded sizes and types do not tell it",
}
#: From this share of the call on a second part, and work of unknown limit, is worth a word.
SECOND, UNKNOWN = 0.1, 0.02


def bound_because(bound: Bound) -> str:
    """`in 59 % of the call the GPU had nothing to do ...`, with what a bare recording leaves open."""
    return ". ".join(_sentences(bound))


def _sentences(bound: Bound) -> Iterator[str]:
    yield _shares(bound)
    if bound.starved_share is not None and bound.kind == "launch-bound":
        yield f"At {_percent(bound.starved_share)} of the launches, as recorded, the GPU had run out of work"
    if bound.if_slowed:
        yield _if_slowed(bound.if_slowed)


def _shares(bound: Bound) -> str:
    """The two largest parts, the second if it is a tenth at least, and what cannot be told."""
    parts, whole_is = bound.parts_us, "call" if bound.basis == "unprofiled" else "recording"
    whole = math.fsum(parts.values())
    if not whole:
        return f"nothing was seen in the {whole_is}"
    first, second = sorted(parts, key=lambda part: -parts[part])[:2]
    named = [part for part in (first, second) if part == first or parts[part] >= SECOND * whole]
    if "unknown" not in named and parts.get("unknown", 0.0) >= UNKNOWN * whole:
        named.append("unknown")
    shares = [_percent(parts[part] / whole) for part in named]
    shares[0] = f"{shares[0]} of the {whole_is}"
    return "; ".join(f"in {share} {_part(part, bound)}" for share, part in zip(shares, named, strict=True))


def _part(part: str, bound: Bound) -> str:
    if part != "unknown":
        return PARTS[part]
    why = f" ({UNKNOWN_BECAUSE[bound.unknown_because]})" if bound.unknown_because else ""
    return f"the GPU ran products of unknown limit{why}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _if_slowed(told: BoundIfSlowed) -> str:
    as_recorded, slowed = (kind or "of unknown limit" for kind in (told.as_recorded, told.slowed))
    longer = f"recording made the call {told.times:g} times as long, the most that was ever measured"
    if as_recorded == slowed:
        return f"Even if {longer}, the answer is the same"
    return f"As recorded it is {as_recorded}; if {longer}, it is {slowed}: only times without the profiler can tell"
