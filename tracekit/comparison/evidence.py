"""What shows that a library kernel was exchanged, and at what price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.comparison.inputs import masking_of, same_inputs
from tracekit.comparison.matching.epilogues import asks_for_other_work, named_beside
from tracekit.comparison.matching.library import KIND_OF_FAMILY, is_helper, is_library, library_family
from tracekit.comparison.matching.operators import Dims
from tracekit.comparison.memory_layout import MOVED, moved_last
from tracekit.model.comparison import GroupKind
from tracekit.model.sequence import Activity, Operator
from tracekit.names import short_kernel_name
from tracekit.numbers import duration

LOW_PRECISION = ("c10::BFloat16", "c10::Half")
#: How names of products in single precision read, where operators do not tell.
SINGLE_PRECISION = ("f32f32_f32f32", "sgemm", "tf32")

#: A kernel that takes so many times as long does not do the same.
CLEARLY = 1.25

#: Characters of a kernel's name that are shown.
LONGEST_NAME = 48


def find_evidence(kind: GroupKind, a: Sequence[Activity], b: Sequence[Activity]) -> tuple[str, ...]:
    """Sentences, for groups with a library kernel that did not stay as it was; none for others."""
    if kind in ("unmatched", "eliminated", "added") or not any(map(is_library, (*a, *b))):
        return ()
    changed = (
        *(_lost_attention, _single_precision, _lost_epilogue, _other_operator, _copies, _split, _other_kernel),
        _laid_out_otherwise,
    )
    found = (_other_attention, _slower) if kind == "unchanged" else (*changed, _other_attention, _slower)
    return tuple(sentence for find in found for sentence in find(a, b))


def _slower(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    """The same library kernel takes clearly longer or shorter, in this place."""
    before, after = (max(filter(is_library, side), key=_duration, default=None) for side in (a, b))
    if before is None or after is None or before.name != after.name or not before.duration_us:
        return
    factor = after.duration_us / before.duration_us
    if 1 / CLEARLY < factor < CLEARLY:
        return
    one, other = before.operator, after.operator
    told = before.family != "attention" and one is not None and other is not None and not same_inputs(one, other)
    why = f" Its inputs were {_sizes(one)} and are {_sizes(other)}." if told and one and other else ""
    yield f"The same kernel takes {duration(after.duration_us)} a call instead of {duration(before.duration_us)}.{why}"


def _duration(activity: Activity) -> float:
    return activity.duration_us


def _sizes(operator: Operator) -> str:
    return ", ".join(_size(dims) for dims in operator.dims if dims)


def _size(dims: Sequence[int]) -> str:
    return "x".join(map(str, dims))


def _other_attention(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    """One attention kernel on either side, which was asked for something else."""
    before, after = ([each.operator for each in side if library_family(each) == "attention"] for side in (a, b))
    if len(before) != 1 or len(after) != 1 or before[0] is None or after[0] is None:
        return
    said = "; ".join(_differences(before[0], after[0]))
    if said:
        yield f"Attention is asked for otherwise: {said}."


def _differences(before: Operator, after: Operator) -> Iterator[str]:
    """In operator, causal flag, mask, and sizes of query, key and value."""
    if before.name != after.name:
        yield f"by {after.name}, before by {before.name}"
    one, other = masking_of(before), masking_of(after)
    if one is None or other is None:
        return
    if None not in (one.causal, other.causal) and one.causal != other.causal:
        yield f"is_causal was {one.causal} and is {other.causal}"
    if one.mask != other.mask:
        yield _mask_change(one.mask, other.mask)
    names = ("query", "key", "value")
    if before.name == after.name:
        for name, was, now in zip(names, before.dims, after.dims, strict=False):
            if was != now:
                yield f"the {name} was {_size(was)} and is {_size(now)}"


def _mask_change(before: Dims | None, after: Dims | None) -> str:
    if before is None or after is None:
        return f"a mask of {_size(after)} came in" if after else f"the mask of {_size(before or ())} is gone"
    return f"the mask was {_size(before)} and is {_size(after)}"


def _lost_attention(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    lost = next((each for each in a if each.family == "attention"), None)
    families = [library_family(each) for each in b]
    products = families.count("gemm")
    if lost and products and "attention" not in families:
        work = f"{_counted(products, 'matrix product')} and {_counted(len(b) - products, 'other kernel')}"
        yield f"The attention kernel {_short(lost)} is gone: {work} do its work."


def _single_precision(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    before = {dtype for each in a if is_library(each) for dtype in _tensor_types(each)}
    low = [dtype for dtype in LOW_PRECISION if dtype in before]
    after = [each for each in b if library_family(each) == "gemm" and _is_single(each)]
    if after and (low or not before) and not any(_is_single(each) for each in a if is_library(each)):
        name = low[0].removeprefix("c10::").lower() if low else "another precision"
        are = "is" if len(after) == 1 else "are"
        yield f"{_counted(len(after), 'matrix product')} {are} computed in float32, before in {name}."


def _tensor_types(activity: Activity) -> Iterator[str]:
    if activity.operator:
        for dims, dtype in zip(activity.operator.dims, activity.operator.dtypes, strict=False):
            if dims:
                yield dtype


def _is_single(activity: Activity) -> bool:
    types = set(_tensor_types(activity))
    return types == {"float"} if types else any(part in activity.name for part in SINGLE_PRECISION)


def _lost_epilogue(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    if _same_product(a, b):
        return
    if _has_epilogue(a) and not _has_epilogue(b) and any(each.family == "gemm" for each in b if is_library(each)):
        own = [each for each in b if not is_library(each) and each.family in ("pointwise", "copy", "triton")]
        by = (
            f": {len(own)} kernels beside it do that"
            if len(own) > 1
            else ": a kernel beside it does that"
            if own
            else ""
        )
        yield f"The product no longer adds the bias or applies the activation itself{by}."


def _other_operator(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    """One library call on either side, by an operator that does more, or less, beside it."""
    before, after = ([each for each in side if is_library(each)] for side in (a, b))
    if len(before) != 1 or len(after) != 1 or not asks_for_other_work(before[0], after[0]):
        return
    if before[0].operator and after[0].operator:
        what = KIND_OF_FAMILY[library_family(before[0]) or before[0].family]
        yield f"The {what} is asked for by {after[0].operator.name}, before by {before[0].operator.name}."


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


def _copies(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    if not any(each.family == "attention" for each in b):
        return
    # A Triton kernel may as well stand for whatever else A did here.
    more = _laying_out(b) - sum(not is_library(each) and not is_helper(each.name) for each in a)
    if more > 0:
        yield f"{more} more {'kernel prepares' if more == 1 else 'kernels prepare'} inputs or results for it."


def _laying_out(activities: Sequence[Activity]) -> int:
    return sum(each.family in ("copy", "triton") for each in activities)


def _split(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    before, after = (any("splitk" in each.name.lower().replace("_", "") for each in side) for side in (a, b))
    if after and not before:
        yield "The product is now split along K, and its parts are summed up afterwards."
    if before and not after:
        yield "The product is no longer split along K."


def _other_kernel(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    before, after = ([each for each in side if is_library(each)] for side in (a, b))
    if len(before) == len(after) == 1 and before[0].name != after[0].name:
        yield f"Another kernel: {_short(after[0])} instead of {_short(before[0])}."


def _laid_out_otherwise(a: Sequence[Activity], b: Sequence[Activity]) -> Iterator[str]:
    if moved_last(a, b):
        yield MOVED


def _short(activity: Activity) -> str:
    return short_kernel_name(activity.name, LONGEST_NAME)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
