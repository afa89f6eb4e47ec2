"""What shows that a library kernel was exchanged, and at what price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tracekit.comparison.cost.memory_layout import moved_last
from tracekit.comparison.matching.epilogues import asks_for_other_work, named_beside
from tracekit.comparison.matching.inputs import masking_of, same_inputs
from tracekit.comparison.matching.library import KIND_OF_FAMILY, is_helper, is_library, library_family
from tracekit.comparison.matching.operators import Dims
from tracekit.model.comparison import GroupKind
from tracekit.model.evidence import Evidence
from tracekit.model.sequence import Activity, Operator

LOW_PRECISION = ("c10::BFloat16", "c10::Half")
#: How names of products in single precision read, where operators do not tell.
SINGLE_PRECISION = ("f32f32_f32f32", "sgemm", "tf32")

#: A kernel that takes so many times as long does not do the same.
CLEARLY = 1.25


def find_evidence(kind: GroupKind, a: Sequence[Activity], b: Sequence[Activity]) -> tuple[Evidence, ...]:
    """For groups with a library kernel that did not stay as it was; none for others."""
    if kind in ("unmatched", "eliminated", "added") or not any(map(is_library, (*a, *b))):
        return ()
    changed = (
        *(_lost_attention, _single_precision, _lost_epilogue, _other_operator, _copies, _split, _other_kernel),
        _laid_out_otherwise,
    )
    found = (_other_attention, _slower) if kind == "unchanged" else (*changed, _other_attention, _slower)
    return tuple(each for find in found for each in find(a, b))


def _slower(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    """The same library kernel takes clearly longer or shorter, in this place."""
    before, after = (max(filter(is_library, side), key=_duration, default=None) for side in (a, b))
    if before is None or after is None or before.name != after.name or not before.duration_us:
        return
    factor = after.duration_us / before.duration_us
    if 1 / CLEARLY < factor < CLEARLY:
        return
    one, other = before.operator, after.operator
    facts: dict[str, Any] = {"before_us": before.duration_us, "after_us": after.duration_us}
    if one and other and before.family != "attention" and not same_inputs(one, other):
        facts["inputs"] = {"before": _sizes(one), "after": _sizes(other)}
    yield Evidence("same_kernel_other_time", facts)


def _duration(activity: Activity) -> float:
    return activity.duration_us


def _sizes(operator: Operator) -> list[list[int]]:
    return [list(dims) for dims in operator.dims if dims]


def _other_attention(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    """One attention kernel on either side, which was asked for something else."""
    before, after = ([each.operator for each in side if library_family(each) == "attention"] for side in (a, b))
    if len(before) != 1 or len(after) != 1 or before[0] is None or after[0] is None:
        return
    if differences := _differences(before[0], after[0]):
        yield Evidence("attention_asked_otherwise", differences)


def _differences(before: Operator, after: Operator) -> dict[str, Any]:
    """In operator, causal flag, mask, and sizes of query, key and value: what it was before, and is after."""
    found: dict[str, Any] = {}
    if before.name != after.name:
        found["operator"] = {"before": before.name, "after": after.name}
    one, other = masking_of(before), masking_of(after)
    if one is None or other is None:
        return found
    if None not in (one.causal, other.causal) and one.causal != other.causal:
        found["is_causal"] = {"before": one.causal, "after": other.causal}
    was_masked, is_masked = _listed(one.mask), _listed(other.mask)
    if was_masked != is_masked:
        found["mask"] = {"before": was_masked, "after": is_masked}
    if before.name == after.name:
        for name, was, now in zip(("query", "key", "value"), before.dims, after.dims, strict=False):
            if was != now:
                found[name] = {"before": list(was), "after": list(now)}
    return found


def _listed(dims: Dims | None) -> list[int] | None:
    """A mask's sizes; None where there is none."""
    return list(dims) if dims else None


def _lost_attention(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    lost = next((each for each in a if each.family == "attention"), None)
    families = [library_family(each) for each in b]
    products = families.count("gemm")
    if lost and products and "attention" not in families:
        facts = {"kernel": lost.name, "products": products, "other_kernels": len(b) - products}
        yield Evidence("attention_lost", facts)


def _single_precision(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    before = {dtype for each in a if is_library(each) for dtype in _tensor_types(each)}
    low = [dtype for dtype in LOW_PRECISION if dtype in before]
    after = [each for each in b if library_family(each) == "gemm" and _is_single(each)]
    if after and (low or not before) and not any(_is_single(each) for each in a if is_library(each)):
        dtype = low[0].removeprefix("c10::").lower() if low else None
        yield Evidence("single_precision", {"products": len(after), "before": dtype})


def _tensor_types(activity: Activity) -> Iterator[str]:
    if activity.operator:
        for dims, dtype in zip(activity.operator.dims, activity.operator.dtypes, strict=False):
            if dims:
                yield dtype


def _is_single(activity: Activity) -> bool:
    types = set(_tensor_types(activity))
    return types == {"float"} if types else any(part in activity.name for part in SINGLE_PRECISION)


def _lost_epilogue(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    if _same_product(a, b):
        return
    if _has_epilogue(a) and not _has_epilogue(b) and any(each.family == "gemm" for each in b if is_library(each)):
        own = [each for each in b if not is_library(each) and each.family in ("pointwise", "copy", "triton")]
        yield Evidence("epilogue_lost", {"kernels_beside": len(own)})


def _other_operator(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    """One library call on either side, by an operator that does more, or less, beside it."""
    before, after = ([each for each in side if is_library(each)] for side in (a, b))
    if len(before) != 1 or len(after) != 1 or not asks_for_other_work(before[0], after[0]):
        return
    if before[0].operator and after[0].operator:
        what = KIND_OF_FAMILY[library_family(before[0]) or before[0].family]
        names = {"before": before[0].operator.name, "after": after[0].operator.name}
        yield Evidence("other_operator", {"work": what, **names})


def _same_product(a: Sequence[Activity], b: Sequence[Activity]) -> bool:
    """The same kernel adds the bias, or does not, as it did."""
    before, after = ({each.name for each in side if is_library(each)} for side in (a, b))
    return bool(before & after)


def _has_epilogue(activities: Sequence[Activity]) -> bool:
    return any(
        bool(named_beside(each.name)) for each in activities if is_library(each) and each.family == "gemm"
    ) or any(
        each.operator is not None and each.operator.name == "aten::addmm" and _alone(each, activities)
        for each in activities
        if is_library(each)
    )


def _alone(product: Activity, activities: Sequence[Activity]) -> bool:
    """Whether nothing but the product could have added the bias."""
    return all(each is product or each.family in ("memset", "gemm") for each in activities)


def _copies(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    if not any(each.family == "attention" for each in b):
        return
    # A Triton kernel may as well stand for whatever else A did here.
    more = _laying_out(b) - sum(not is_library(each) and not is_helper(each.name) for each in a)
    if more > 0:
        yield Evidence("inputs_prepared", {"kernels": more})


def _laying_out(activities: Sequence[Activity]) -> int:
    return sum(each.family in ("copy", "triton") for each in activities)


def _split(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    before, after = (any("splitk" in each.name.lower().replace("_", "") for each in side) for side in (a, b))
    if before != after:
        yield Evidence("split_along_k", {"is_split": after})


def _other_kernel(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    before, after = ([each for each in side if is_library(each)] for side in (a, b))
    if len(before) == len(after) == 1 and before[0].name != after[0].name:
        yield Evidence("other_kernel", {"before": before[0].name, "after": after[0].name})


def _laid_out_otherwise(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[Evidence]:
    if moved_last(a, b):
        yield Evidence("channels_moved_last")
