"""How near does a kernel come to what the device could do, and which of its limits does it meet first?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from tracekit.comparison.cost.flops import PRODUCTS
from tracekit.comparison.cost.operator_calls import Call
from tracekit.model.rates import Peak, Rates
from tracekit.model.sequence import Activity, Operator

Limit = Literal["compute", "memory", "copy", "neither"]

#: A kernel of these families does a few operations for each byte it moves, a device can do hundreds: memory is its
#: limit, whatever its sizes.
MOVING = ("normalization", "pointwise", "reduction", "copy", "memset")
COPYING = ("memcpy",)

#: Triton kernels that Inductor made from a template of a product, an attention or a convolution.
TEMPLATES = ("triton_tem_", "triton_mm", "triton_bmm", "triton_convolution", "triton_flex", "triton_flash")

#: A product that takes this many microseconds and more, and this many times as long as at either limit, is held back by
#: its kernel. Shorter ones have no time to reach anything. On an H200 ten depthwise convolutions took 65 times as long
#: in cuDNN's general kernel as their bytes did.
LONG_US, FAR = 20.0, 20.0

#: Parts of names of kernels that multiply float32 in matrix units, rounded to tf32: cuBLAS and cuDNN name the type or
#: the instruction (s1688, s16816), CUTLASS the units; nvjet kernels have no others.
IN_MATRIX_UNITS = ("tf32", "tensorop", "s1688", "s16816", "nvjet", "hmma", "wgmma")
#: The same of kernels that keep to the vector units.
IN_VECTOR_UNITS = ("simt", "sgemm", "ffma", "gemv", "gemmsn", "dot_kernel")


def rates_of(calls: Sequence[Call], peak: Peak | None) -> Rates:
    """What calls of one operator did and how fast, the mean of them, by estimate. A call takes as long as all it
    launched. None for what is not known of each of them."""
    us = math.fsum(call.duration_us for call in calls)
    size = _believable(_sum([call.bytes for call in calls]), us, peak)
    flops = _sum([call.flops for call in calls])
    bandwidth = size / us / 1e3 if size is not None and us else None
    arithmetic = flops / us / 1e6 if flops is not None and us else None
    top = _arithmetic_peak(calls[0], peak) if calls else None
    return Rates(
        bytes=None if size is None else size / len(calls),
        flops=None if flops is None else flops / len(calls),
        gb_per_s=bandwidth,
        tflop_per_s=arithmetic,
        bandwidth_share=bandwidth / peak.gb_per_s if bandwidth is not None and peak else None,
        arithmetic_share=arithmetic / top if arithmetic is not None and top else None,
    )


def _sum(figures: Sequence[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known and len(known) == len(figures) else None


def _believable(size: int | None, us: float, peak: Peak | None) -> int | None:
    """None for more bytes than the device's memory could have moved: a cache served them, or the call did not touch all
    of its inputs. Which, nobody can tell."""
    return None if size is not None and peak and size > peak.gb_per_s * us * 1e3 else size


def limit_of(activity: Activity, peak: Peak | None) -> Limit | None:
    """Which limit of the device the activity meets first, by estimate; None where its sizes or the peak are not known.

    A product is limited by compute if its operations take longer at the peak rate than its bytes do, and by neither if
    it takes far longer than both.
    """
    if activity.family in COPYING:
        return "copy"
    if activity.family in MOVING or (activity.family == "triton" and not activity.name.startswith(TEMPLATES)):
        return "memory"
    call = Call((activity,))
    top = _arithmetic_peak(call, peak)
    flops, size = call.flops, call.bytes
    if peak is None or top is None or flops is None or size is None:
        return None
    compute_us, memory_us = flops / top / 1e6, size / peak.gb_per_s / 1e3
    if activity.duration_us >= max(LONG_US, FAR * max(compute_us, memory_us)):
        return "neither"
    return "compute" if compute_us > memory_us else "memory"


def _arithmetic_peak(call: Call, peak: Peak | None) -> float | None:
    """TFLOP/s for the type of the inputs; None where it is not known which units they go through."""
    if peak is None or call.operator is None:
        return None
    kind = _input_type(call.operator)
    if kind == "float":
        return _float32_peak(call, peak)
    return {"c10::BFloat16": peak.bf16_tflop_per_s, "c10::Half": peak.fp16_tflop_per_s}.get(kind)


def _float32_peak(call: Call, peak: Peak) -> float | None:
    """By the kernels' names; where these do not tell, by torch's setting, which is of products alone."""
    names = [each.name.lower() for each in call.activities]
    if any(part in name for name in names for part in IN_MATRIX_UNITS):
        return peak.tf32_tflop_per_s
    if any(part in name for name in names for part in IN_VECTOR_UNITS):
        return peak.fp32_tflop_per_s
    if peak.float32_precision is None or call.operator is None or call.operator.name not in PRODUCTS:
        return None
    return peak.fp32_tflop_per_s if peak.float32_precision == "highest" else peak.tf32_tflop_per_s


def _input_type(operator: Operator) -> str:
    at = PRODUCTS.get(operator.name, 0)
    return operator.dtypes[at] if len(operator.dtypes) > at else ""
