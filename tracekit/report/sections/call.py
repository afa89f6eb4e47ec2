"""What one call of each side consists of: matrix work, other GPU work, communication, and waiting."""

import math
from collections.abc import Sequence

from msgspec import Struct

from tracekit.model.comparison import Comparison, Side
from tracekit.model.waterfall import Basis

#: Families of kernels that multiply matrices or convolve, whoever wrote them.
MATRIX = ("gemm", "attention", "convolution")

#: What a call consists of, as legends call it.
CALL_PARTS = {
    "library": "matmul, attention, convolution",
    "other": "other kernels and copies",
    "communication": "exposed communication, waiting included",
    "idle": "GPU idle",
}


class CallTime(Struct, frozen=True):
    """One call of a side: the unprofiled call's median time, or as recorded where the basis is the trace, and what it
    consists of, by kind. Communication has nothing beside it, and waiting for other ranks is in it."""

    whole_us: float
    parts_us: dict[str, float]  #: As `CALL_PARTS`, in its order; they add up to the whole.


def call_time(side: Side, basis: Basis) -> CallTime | None:
    """None where the side's call or its idle time is not known.

    Where kernels ran beside each other, or the recording holds more work than the unprofiled call took, every kernel's
    time is taken smaller by the same factor.
    """
    whole, idle = side.wall_us if basis == "unprofiled" else side.span_us, side.idle_us(basis)
    if whole is None or idle is None or side.analysis.gpu is None:
        return None
    kernels, copies = side.analysis.kernels, side.analysis.copies
    families = [each for each in kernels.by_family if each.family != "communication"] if kernels else []
    busy, exposed = whole - idle, side.exposed_us
    communication = min(exposed / side.busy_us, 1.0) * busy if side.busy_us else 0.0
    copied = copies.total_us if copies else 0.0
    every = math.fsum((*(each.total_us for each in families), copied, side.analysis.gpu.outside_us))
    share = math.fsum(each.total_us for each in families if each.family in MATRIX) / every if every else 0.0
    matrix = (busy - communication) * share
    other = busy - communication - matrix
    return CallTime(whole, {"library": matrix, "other": other, "communication": communication, "idle": idle})


def call_times(comparisons: Sequence[Comparison], sides: Sequence[Side]) -> tuple[Basis, tuple[CallTime, ...]] | None:
    """Of all sides on one scale, and which that is; None where there is none for all of them. Communication is no part
    where no side has any."""
    bases = {each.waterfall.basis if each.waterfall else None for each in comparisons}
    basis = bases.pop() if len(bases) == 1 else None
    found = tuple(each for side in sides if basis and (each := call_time(side, basis)))
    if basis is None or len(found) < len(sides):
        return None
    if not any(call.parts_us["communication"] for call in found):
        for call in found:
            del call.parts_us["communication"]
    return basis, found
