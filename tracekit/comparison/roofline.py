"""How near does a kernel come to what the device could do, and which of its limits does it meet first?"""

from __future__ import annotations

from typing import Literal

from tracekit.comparison.flops import PRODUCTS, flops_of
from tracekit.comparison.traffic import bytes_of, computes
from tracekit.model.rates import Peak, Rates
from tracekit.model.sequence import Activity, Operator

Limit = Literal["compute", "memory", "copy"]

#: A kernel of these families does a few operations for each byte it moves, a device can do hundreds: memory is its
#: limit, whatever its sizes.
MOVING = ("normalization", "pointwise", "reduction", "copy", "memset")
COPYING = ("memcpy",)

#: Triton kernels that Inductor made from a template of a product, an attention or a convolution.
TEMPLATES = ("triton_tem_", "triton_mm", "triton_bmm", "triton_convolution", "triton_flex", "triton_flash")


def rates_of(activity: Activity, peak: Peak | None, output: tuple[int, ...] | None = None) -> Rates:
    """What one activity's call did and how fast, by estimate. `output` is the size of a convolution's result, if known.

    For a call of several kernels this is of the one that computes, so it errs on the fast side; the others have none.
    """
    operator, us = activity.operator if computes(activity) else None, activity.duration_us
    size = _believable(bytes_of(operator) if operator else None, us, peak)
    flops = flops_of(operator, output) if operator else None
    bandwidth = size / us / 1e3 if size is not None and us else None
    arithmetic = flops / us / 1e6 if flops is not None and us else None
    top = _arithmetic_peak(activity, peak)
    return Rates(
        bytes=size,
        flops=flops,
        gb_per_s=bandwidth,
        tflop_per_s=arithmetic,
        bandwidth_share=bandwidth / peak.gb_per_s if bandwidth is not None and peak else None,
        arithmetic_share=arithmetic / top if arithmetic is not None and top else None,
    )


def _believable(size: int | None, us: float, peak: Peak | None) -> int | None:
    """None for more bytes than the device's memory could have moved: a cache served them, or the call did not touch all
    of its inputs. Which, nobody can tell."""
    return None if size is not None and peak and size > peak.gb_per_s * us * 1e3 else size


def limit_of(activity: Activity, peak: Peak | None) -> Limit | None:
    """Which limit of the device the activity meets first, by estimate; None where its sizes or the peak are not known.

    A product is limited by compute if its operations take longer at the peak rate than its bytes do.
    """
    if activity.family in COPYING:
        return "copy"
    if activity.family in MOVING or (activity.family == "triton" and not activity.name.startswith(TEMPLATES)):
        return "memory"
    top = _arithmetic_peak(activity, peak)
    if activity.operator is None or peak is None or top is None:
        return None
    flops, size = flops_of(activity.operator), bytes_of(activity.operator)
    if flops is None or size is None:
        return None
    return "compute" if flops / top / 1e6 > size / peak.gb_per_s / 1e3 else "memory"


def _arithmetic_peak(activity: Activity, peak: Peak | None) -> float | None:
    """TFLOP/s for the type of the inputs; fp32 goes through tf32 units where the kernel's name says so."""
    if peak is None or activity.operator is None:
        return None
    kind = _input_type(activity.operator)
    if kind == "float":
        return peak.tf32_tflop_per_s if "tf32" in activity.name.lower() else peak.fp32_tflop_per_s
    return {"c10::BFloat16": peak.bf16_tflop_per_s, "c10::Half": peak.fp16_tflop_per_s}.get(kind)


def _input_type(operator: Operator) -> str:
    at = PRODUCTS.get(operator.name, 0)
    return operator.dtypes[at] if len(operator.dtypes) > at else ""
