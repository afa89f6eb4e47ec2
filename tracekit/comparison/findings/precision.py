"""Does compiled code compute something else than eager code, or run products in float32 in a model of 16 bits?"""

import math

from tracekit.comparison.commands import profile_command
from tracekit.comparison.findings.slower_kernels import find_lost_attention
from tracekit.comparison.matching.operators import KIND_OF_FAMILY
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.model.sequence import Activity
from tracekit.names import is_triton
from tracekit.statements.advice import RunAgain
from tracekit.statements.findings.precision import OutputsDiffer, SinglePrecision

#: Less than this share of GPU time is not worth a line.
WORTH_SAYING = 0.02
HALVES = ("bfloat16", "float16")
HALF_TYPES = ("c10::BFloat16", "c10::Half")


def find_outputs_differ(comparison: Comparison) -> Finding | None:
    """Found when B's outputs are further from the truth than rounding explains (docs/numerics.md). The command it
    advises rounds inside fused kernels as eager does: where that mends it, the order of rounding is the reason."""
    accuracy, settings = comparison.accuracy, comparison.b.settings
    if accuracy is None or accuracy.result != "less_accurate":
        return None
    statement, advice = OutputsDiffer(comparison.a.label, comparison.b.label, accuracy.reason), None
    if settings:
        advice = RunAgain(f"TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1 {profile_command(settings)}")
    return Finding(statement, advice=advice)


def find_single_precision(comparison: Comparison) -> Finding | None:
    """Found when products of float32 take over 2 % of B's GPU time though the model is of 16 bits: the run's settings
    say so, or most of the other products are. Where they come of a lost attention kernel that finding counts them.

    The saving is half of their time: 16 bits move half the bytes, and no GPU with such units multiplies them at less
    than twice the rate.
    """
    side = comparison.b
    calls = _library_calls(side)
    single = [each for each in calls if _type(each) == "float"]
    if side.settings is not None:
        is_half = side.settings.dtype in HALVES
    else:
        half_us = sum(each.duration_us for each in calls if _type(each) in HALF_TYPES)
        is_half = half_us > sum(each.duration_us for each in calls) / 2
    if not single or side.sequence is None or not side.busy_us or not is_half:
        return None
    us = math.fsum(each.duration_us for each in single) * side.sequence.per_step
    if us < WORTH_SAYING * side.busy_us or find_lost_attention(comparison):
        return None
    one = comparison.a
    typed = _library_calls(one)
    before = [each for each in typed if _type(each) == "float"]
    names = (one.form.name, side.form.name) if one.form and side.form else None
    statement = SinglePrecision(
        side=side.label,
        products=len(single) * side.sequence.per_step,
        operators=tuple(dict.fromkeys(each.operator.name for each in single if each.operator)),
        products_us=us,
        busy_us=side.busy_us,
        read=len(single),
        read_before=len(before),
        before=one.label if one is not side and typed else None,
        by_compiling=names == ("eager", "compiled") and one.settings == side.settings,
    )
    at = {position for position, each in enumerate(side.sequence.activities) if each in single}
    groups = tuple(number for number, group in enumerate(comparison.groups) if not at.isdisjoint(group.b_at))
    return Finding(statement, us / 2, groups=groups)


def _library_calls(side: Side) -> list[Activity]:
    activities = side.sequence.activities if side.sequence else ()
    # Of a template of Inductor's the inputs are not the factors alone.
    calls = (each for each in activities if each.family in KIND_OF_FAMILY and not is_triton(each.name))
    return [each for each in calls if each.operator and each.operator.dtypes]


def _type(activity: Activity) -> str:
    """The type of the first input that is a tensor of numbers."""
    types = activity.operator.dtypes if activity.operator else ()
    return next((each for each in types if each in ("float", *HALF_TYPES)), "")
