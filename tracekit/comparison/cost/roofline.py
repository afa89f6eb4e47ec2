"""What could the device do at most, how near does a kernel come to it, and which limit does it meet first?"""

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tracekit.comparison.cost.flops import MATMULS
from tracekit.comparison.cost.operator_calls import Call
from tracekit.comparison.cost.traffic import sum_if_known
from tracekit.comparison.matching.operators import is_library
from tracekit.model.comparison import Side
from tracekit.model.sequence import Activity, Limit, Peak, Rates
from tracekit.names import TEMPLATE

#: GB/s, then TFLOP/s of bf16, fp16, tf32 (matrix units) and fp32 (vector units; AMD: matrix units). The first whose
#: words are all in the name. Makers print tensor figures "with sparsity"; these are half of those.
PEAKS = (
    # NVIDIA HGX B200 data sheet (2025): 8 GPUs, 64 TB/s, 36 PFLOPS bf16 and 18 PFLOPS tf32 with sparsity, 600 fp32.
    Peak("b200", 8000, 2250, 2250, 1125, 75),
    # NVIDIA H200 data sheet (2024): SXM and NVL.
    Peak("h200 nvl", 4800, 835.5, 835.5, 417.5, 60),
    Peak("h200", 4800, 989.5, 989.5, 494.5, 67),
    # NVIDIA H100 data sheet (2023, 2024): PCIe, NVL; SXM is called "H100 80GB HBM3".
    Peak("h100 pcie", 2000, 756, 756, 378, 51),
    Peak("h100 nvl", 3900, 835.5, 835.5, 417.5, 60),
    Peak("h100", 3350, 989.5, 989.5, 494.5, 67),
    # NVIDIA A100 data sheet (2021): 80GB PCIe, 80GB SXM; 40GB from the one of 2020.
    Peak("a100 pcie 80gb", 1935, 312, 312, 156, 19.5),
    Peak("a100 80gb", 2039, 312, 312, 156, 19.5),
    Peak("a100 40gb", 1555, 312, 312, 156, 19.5),
    # NVIDIA L4 and L40S data sheets (2023).
    Peak("l40s", 864, 362, 362, 183, 91.6),
    Peak("l4", 300, 121, 121, 60, 30.3),
    # NVIDIA A10G: AWS G5 and NVIDIA's A10 family brief (2021).
    Peak("a10g", 600, 70, 70, 35, 31.5),
    # NVIDIA T4 data sheet (2018), V100 data sheet (2020): neither has bf16 or tf32 matrix units.
    Peak("t4", 320, None, 65, None, 8.1),
    Peak("v100 pcie", 900, None, 112, None, 14),
    Peak("v100", 900, None, 125, None, 15.7),
    # NVIDIA Ada GPU architecture whitepaper (2023), fp32 accumulation.
    Peak("rtx 4090", 1008, 165.2, 165.2, 82.6, 82.6),
    # AMD Instinct MI300X data sheet (2023).
    Peak("mi300x", 5300, 1307.4, 1307.4, 653.7, 163.4),
)


#: A part of a GPU, or a smaller one of the same number.
OTHER_DEVICES = {"mig", "laptop", "d", "max"}


def peak_of(device: str | None) -> Peak | None:
    """The peak of a device by the name its driver gives it; None for one that is not known."""
    words = set((device or "").lower().replace("-", " ").replace("_", " ").split())
    if words & OTHER_DEVICES:
        return None
    return next((peak for peak in PEAKS if words.issuperset(peak.device.split())), None)


def peak_of_side(side: Side) -> Peak | None:
    """The peak of the device a side ran on, and how it was told to multiply float32; None for a device that is not
    known."""
    environment = side.environment
    names = [environment.gpu if environment else None, *(device.name for device in side.analysis.devices)]
    peak = next((peak for name in names if (peak := peak_of(name))), None)
    return replace(peak, float32_precision=environment.float32_matmul_precision) if peak and environment else peak


#: A kernel of these families does a few operations for each byte it moves, a device can do hundreds: memory is its
#: limit, unless it is too small.
MOVING = ("normalization", "pointwise", "reduction", "copy", "memset")
COPYING = ("memcpy",)

#: A kernel that takes less than this many microseconds, and reaches less than this share of both limits, is too small
#: to fill the GPU: starting, a chain of loads and ending take most of it. On an H100 that was 74 and 75 % of ViT's GPU
#: time and half of Qwen's; of FLUX's kernels of 20 to 100 us only 3 % of its GPU time stayed below 30 %.
LONG_US, FILLED = 20.0, 0.3
#: A product of `LONG_US` and more that takes this many times as long as at either limit is held back by its kernel. On
#: an H200 ten depthwise convolutions took 65 times as long in cuDNN's general kernel as their bytes did.
FAR = 20.0

#: Parts of names of kernels that multiply float32 in matrix units, rounded to tf32: cuBLAS and cuDNN name the type or
#: the instruction (s1688, s16816), CUTLASS the units; nvjet kernels have no others.
IN_MATRIX_UNITS = ("tf32", "tensorop", "s1688", "s16816", "nvjet", "hmma", "wgmma")
#: The same of kernels that keep to the vector units.
IN_VECTOR_UNITS = ("simt", "sgemm", "ffma", "gemv", "gemmsn", "dot_kernel")


def rates_of(calls: Sequence[Call], peak: Peak | None) -> Rates:
    """What calls of one operator did and how fast, the mean of them, by estimate. A call takes as long as all it
    launched. None for what is not known of each of them."""
    us = math.fsum(call.duration_us for call in calls)
    size = sum_if_known(*(call.bytes for call in calls))
    # More bytes than the device's memory could have moved: a cache served them, or the call did not touch all of its
    # inputs. Which, nobody can tell.
    if size is not None and peak and size > peak.gb_per_s * us * 1e3:
        size = None
    flops = sum_if_known(*(call.flops for call in calls))
    bandwidth = size / us / 1e3 if size is not None and us else None
    arithmetic = flops / us / 1e6 if flops is not None and us else None
    top = _arithmetic_peak(calls[0], peak)
    main = max(calls[0].activities, key=lambda each: (is_library(each), each.duration_us))
    (limit,) = limits_of([replace(main, duration_us=us / len(calls))], peak)
    return Rates(
        bytes=None if size is None else size / len(calls),
        flops=None if flops is None else flops / len(calls),
        gb_per_s=bandwidth,
        tflop_per_s=arithmetic,
        bandwidth_share=bandwidth / peak.gb_per_s if bandwidth is not None and peak else None,
        arithmetic_share=arithmetic / top if arithmetic is not None and top else None,
        limit=limit,
    )


def limits_of(activities: Sequence[Activity], peak: Peak | None) -> Iterator[Limit | None]:
    """Which limit of the device each activity meets first, by estimate; None where its sizes or the peak are not known.
    Communication meets none of the device's own: links between devices, and other ranks, limit it.

    A product is limited by compute if its operations take longer at the peak rate than its bytes do, and by neither if
    it takes far longer than both. What is too `small` to fill the GPU comes near no limit.
    """
    # Of a million activities most are alike in all but their duration.
    found: dict[tuple[str, str, int, int], tuple[Limit | None, float | None]] = {}
    for each in activities:
        key = (each.name, each.family, id(each.operator), id(each.noted))
        known = found.get(key)
        if known is None:
            known = found[key] = _limit_and_time(each, peak)
        limit, least_us = known
        if least_us is None:
            yield limit
        elif each.duration_us < LONG_US and least_us < FILLED * each.duration_us:
            yield "small"
        else:
            yield "neither" if not _moves(each) and each.duration_us >= max(LONG_US, FAR * least_us) else limit


def _moves(activity: Activity) -> bool:
    return activity.family in MOVING or (activity.family == "triton" and not TEMPLATE.match(activity.name))


def _limit_and_time(activity: Activity, peak: Peak | None) -> tuple[Limit | None, float | None]:
    """The limit, and the microseconds that the activity takes at it; None where that is not known."""
    if activity.family in COPYING:
        return "copy", None
    if activity.family == "communication":
        return "communication", None
    call = Call((activity,))
    memory_us = call.bytes / peak.gb_per_s / 1e3 if call.bytes and peak else None
    if _moves(activity):
        return "memory", memory_us
    top, flops = _arithmetic_peak(call, peak), call.flops
    if top is None or flops is None or memory_us is None:
        return None, None
    compute_us = flops / top / 1e6
    return ("compute", compute_us) if compute_us > memory_us else ("memory", memory_us)


def _arithmetic_peak(call: Call, peak: Peak | None) -> float | None:
    """TFLOP/s for the type of the inputs; None where it is not known which units they go through."""
    if peak is None or call.operator is None:
        return None
    at, dtypes = MATMULS.get(call.operator.name, 0), call.operator.dtypes
    dtype = dtypes[at] if len(dtypes) > at else ""
    if dtype == "float":
        # By the kernels' names; where these do not tell, by torch's setting, which is of products alone.
        names = [each.name.lower() for each in call.activities]
        if any(part in name for name in names for part in IN_MATRIX_UNITS):
            return peak.tf32_tflop_per_s
        if any(part in name for name in names for part in IN_VECTOR_UNITS):
            return peak.fp32_tflop_per_s
        if peak.float32_precision is None or call.operator.name not in MATMULS:
            return None
        return peak.fp32_tflop_per_s if peak.float32_precision == "highest" else peak.tf32_tflop_per_s
    return {"c10::BFloat16": peak.bf16_tflop_per_s, "c10::Half": peak.fp16_tflop_per_s}.get(dtype)
