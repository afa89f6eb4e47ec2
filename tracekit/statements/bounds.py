"""What holds a side back, by the parts of its call."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from tracekit.model.comparison import Bound, UnknownLimit


class PartWords(NamedTuple):
    """What a part of the call is, after its share; `short` in a line that names the rest."""

    long: str
    short: str


#: In these the GPU is idle; `short` stands behind `GPU idle`.
IDLE: Mapping[str, PartWords] = {
    "sync": PartWords("GPU idle behind synchronising calls", "behind synchronising calls"),
    "launch": PartWords("GPU idle, waiting for the host", "waiting for the host"),
    "compile": PartWords("GPU idle during compilation", "while compiling"),
    "device": PartWords("gaps between queued kernels", "between queued kernels"),
    "unseen": PartWords("GPU idle, cause not recorded", "cause not recorded"),
}
#: In these it works.
WORK: Mapping[str, PartWords] = {
    "copy": PartWords("memory copies", "copies"),
    "communication": PartWords(
        "exposed communication, waiting for other ranks included", "exposed communication, waiting included"
    ),
    "memory": PartWords(*2 * ("memory-bound kernels (est.)",)),
    "compute": PartWords(*2 * ("compute-bound kernels (est.)",)),
    "small": PartWords(*2 * ("kernels too small to fill the GPU (est.)",)),
    "neither": PartWords(
        "matmuls and convolutions below 5 % of either roofline (est.)", "kernels far below either limit (est.)"
    ),
    "unknown": PartWords("matmuls of unknown limit", "kernels of unknown limit"),
}
#: Why the limit of work is not known.
UNKNOWN_BECAUSE: Mapping[UnknownLimit, PartWords] = {
    "no_sizes_in_graphs": PartWords(
        "no sizes in CUDA graphs; --ops takes those of another trace", "no sizes in CUDA graphs"
    ),
    "no_sizes": PartWords("no input sizes; record_shapes=True records them", "no sizes recorded"),
    "unknown_device": PartWords("device peak not known", "device peak unknown"),
    "sizes_do_not_tell": PartWords("recorded sizes and types do not suffice", ""),
}
#: From this share of the call on a second part, and work of unknown limit, is worth a word.
SECOND, UNKNOWN = 0.1, 0.02


def bound_because(bound: Bound) -> str:
    """`59 % of the call GPU idle, waiting for the host ...`, with what a bare trace leaves open."""
    said = [_shares(bound)]
    if bound.starved_share is not None and bound.kind == "launch-bound":
        said.append(f"{bound.starved_share * 100:.0f} % of launches hit an empty queue")
    if told := bound.if_slowed:
        as_recorded, slowed = (kind or "unknown" for kind in (told.as_recorded, told.slowed))
        overhead = f"at {told.times:g}x profiler overhead, the most measured"
        same = as_recorded == slowed
        said.append(f"The same {overhead}" if same else f"As profiled {as_recorded}, {slowed} {overhead}")
    return ". ".join(said)


def _shares(bound: Bound) -> str:
    """The two largest parts, the second if it is a tenth at least, and what cannot be told."""
    parts, whole_is = bound.parts_us, "call" if bound.basis == "unprofiled" else "trace"
    whole = math.fsum(parts.values())
    if not whole:
        return f"the {whole_is} has no time to divide"
    first, second = sorted(parts, key=lambda part: -parts[part])[:2]
    named = [part for part in (first, second) if part == first or parts[part] >= SECOND * whole]
    if "unknown" not in named and parts.get("unknown", 0.0) >= UNKNOWN * whole:
        named.append("unknown")
    shares = []
    for part in named:
        whole_words = f" of the {whole_is}" if part == first else ""
        because = UNKNOWN_BECAUSE[bound.unknown_because].long if part == "unknown" and bound.unknown_because else ""
        words = f"{(IDLE.get(part) or WORK[part]).long}{f' ({because})' if because else ''}"
        shares.append(f"{parts[part] / whole * 100:.0f} %{whole_words} {words}")
    return "; ".join(shares)
