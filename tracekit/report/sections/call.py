"""What one call of each side consists of: matrix work, other GPU work, communication, and waiting."""

from __future__ import annotations

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
    """One call of a side, in microseconds: the four add up to `whole_us`."""

    whole_us: float  #: The unprofiled call's median time; as recorded where the basis is the trace.
    matrix_us: float  #: Matrix products, attention, convolutions.
    other_us: float  #: All other GPU work, copies and sets of memory too.
    communication_us: float  #: Communication with nothing beside it, waiting for other ranks included.
    idle_us: float  #: The GPU has nothing to run.


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
    return CallTime(whole, matrix, busy - communication - matrix, communication, idle)


def call_times(comparisons: Sequence[Comparison], sides: Sequence[Side]) -> tuple[Basis, tuple[CallTime, ...]] | None:
    """Of all sides on one scale, and which that is; None where there is none for all of them."""
    bases = {each.waterfall.basis for each in comparisons if each.waterfall}
    if len(bases) != 1 or any(each.waterfall is None for each in comparisons):
        return None
    (basis,) = bases
    found = tuple(each for side in sides if (each := call_time(side, basis)))
    return (basis, found) if len(found) == len(sides) else None
