"""What became of kernels that belong together, and what shows that a library kernel was exchanged, and at what price?

docs/kinds.md has the rules in words.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from tracekit.comparison.cost.flops import moved_last
from tracekit.comparison.matching.operators import (
    KIND_OF_FAMILY,
    Dims,
    epilogues_differ,
    is_helper,
    is_library,
    kernel_epilogue,
    library_family,
    masking_of,
    operator_epilogue,
    same_inputs,
    same_kernel,
)
from tracekit.model.comparison import GroupKind
from tracekit.model.groups import Change, Evidence
from tracekit.model.sequence import CPP, Activity
from tracekit.statements import evidence

LOW_PRECISION = ("c10::BFloat16", "c10::Half")
#: How names of products in single precision read, where operators do not tell.
SINGLE_PRECISION = ("f32f32_f32f32", "sgemm", "tf32")
#: A kernel that takes so many times as long does not do the same.
CLEARLY = 1.25

Activities = Sequence[Activity]
T = TypeVar("T")


def kind_of(a: Activities, b: Activities) -> GroupKind:
    """Of kernels that belong together: what A's have become in B."""
    if not b:
        return "eliminated"
    if not a:
        return "added"
    a_left, b_left = without_same(a, b)
    # Library calls, as many on both sides, that add or apply an activation on one side alone.
    one, other = _library(a), _library(b)
    changed = len(one) == len(other) and any(map(epilogues_differ, one, other))
    if not a_left and not b_left:
        return "substituted" if changed else "unchanged"
    by_number = _by_number(len(a_left), len(b_left))
    a_library, b_library = len(_library(a_left)), len(_library(b_left))
    if a_library and b_library:
        return _by_number(a_library, b_library) or (by_number if changed else None) or "substituted"
    # Inductor wrote one of them; its templates of library kernels are of other families.
    generated = any(each.family in ("triton", CPP) for each in b_left)
    return by_number or ("fused" if generated else "substituted")


def without_same(a: Activities, b: Activities) -> tuple[list[Activity], list[Activity]]:
    """What is left of both sides once the kernels that are the same on both are taken away, one for one."""
    left: list[Activity] = []
    free = dict(enumerate(b))
    for each in a:
        same = next((j for j, other in free.items() if same_kernel(each, other)), None)
        if same is None:
            left.append(each)
        else:
            del free[same]
    return left, list(free.values())


def _library(activities: Activities) -> list[Activity]:
    return [each for each in activities if is_library(each)]


def _by_number(before: int, after: int) -> GroupKind | None:
    return "fused" if after < before else "defused" if after > before else None


def find_evidence(kind: GroupKind, a: Activities, b: Activities) -> tuple[Evidence, ...]:
    """For groups with a library kernel that did not stay as it was; none for others."""
    if kind in ("unmatched", "eliminated", "added") or not any(map(is_library, (*a, *b))):
        return ()
    found: list[Evidence] = []
    if kind != "unchanged":
        found += (*_lost(a, b), *_other_call(a, b))
        if moved_last(a, b):
            found.append(evidence.ChannelsMovedLast())
    return (*found, *_other_attention(a, b), *_other_time(a, b))


def _lost(a: Activities, b: Activities) -> Iterator[Evidence]:
    """What a library did for A and does not for B: attention, products in low precision, a bias or an activation."""
    one, other = _library(a), _library(b)
    attention = next((each for each in a if each.family == "attention"), None)
    families = [library_family(each) for each in other]
    matmuls = families.count("gemm")
    if attention and matmuls and "attention" not in families:
        yield evidence.AttentionLost(kernel=attention.name, products=matmuls, other_kernels=len(b) - matmuls)
    before = {dtype for each in one for dtype in _tensor_types(each)}
    low = [dtype for dtype in LOW_PRECISION if dtype in before]
    single = sum(library_family(each) == "gemm" and _is_single(each) for each in other)
    if single and (low or not before) and not any(map(_is_single, one)):
        dtype = low[0].removeprefix("c10::").lower() if low else None
        yield evidence.SinglePrecision(products=single, before=dtype)
    # The same kernel adds the bias, or does not, as it did.
    same = {each.name for each in one} & {each.name for each in other}
    if not same and any(each.family == "gemm" for each in other) and _has_epilogue(a) and not _has_epilogue(b):
        beside = [each for each in b if not is_library(each) and each.family in ("pointwise", "copy", "triton")]
        yield evidence.EpilogueLost(kernels_beside=len(beside))


def _tensor_types(activity: Activity) -> set[str]:
    operator = activity.operator
    return {dtype for dims, dtype in zip(operator.dims, operator.dtypes, strict=False) if dims} if operator else set()


def _is_single(activity: Activity) -> bool:
    types = _tensor_types(activity)
    return types == {"float"} if types else any(part in activity.name for part in SINGLE_PRECISION)


def _has_epilogue(activities: Activities) -> bool:
    """By the kernel's name; or where nothing but the product could have added the bias."""
    library = _library(activities)
    adding = [each for each in library if each.operator and each.operator.name == "aten::addmm"]
    matmuls = [each.name for each in library if each.family == "gemm"]
    return any(kernel_epilogue(name) or operator_epilogue(name) for name in matmuls) or any(
        all(each is matmul or each.family in ("memset", "gemm") for each in activities) for matmul in adding
    )


def _other_call(a: Activities, b: Activities) -> Iterator[Evidence]:
    """Another operator, that does more or less beside the work; kernels that prepare attention; another kernel."""
    one, other = _library(a), _library(b)
    before, after = (one[0], other[0]) if len(one) == len(other) == 1 else (None, None)
    if before and after and epilogues_differ(before, after) and before.operator and after.operator:
        work = KIND_OF_FAMILY[library_family(before) or before.family]
        yield evidence.OtherOperator(work=work, before=before.operator.name, after=after.operator.name)
    if any(each.family == "attention" for each in b):
        # A Triton kernel may as well stand for whatever else A did here.
        own = sum(not is_library(each) and not is_helper(each.name) for each in a)
        if (more := sum(each.family in ("copy", "triton") for each in b) - own) > 0:
            yield evidence.InputsPrepared(kernels=more)
    was_split, is_split = (any("splitk" in each.name.lower().replace("_", "") for each in side) for side in (a, b))
    if was_split != is_split:
        yield evidence.SplitAlongK(is_split=is_split)
    if before and after and before.name != after.name:
        yield evidence.OtherKernel(before=before.name, after=after.name)


def _other_attention(a: Activities, b: Activities) -> Iterator[Evidence]:
    """One attention kernel on either side, which was asked for something else: operator, causal flag, mask, and sizes
    of query, key and value."""
    one, other = ([each.operator for each in side if library_family(each) == "attention"] for side in (a, b))
    if len(one) != 1 or len(other) != 1 or one[0] is None or other[0] is None:
        return
    before, after = one[0], other[0]
    operator, is_causal, mask = _change(before.name, after.name), None, None
    sizes: dict[str, Change[Dims] | None] = {}
    was, now = masking_of(before), masking_of(after)
    if was and now:
        if was.causal is not None and now.causal is not None:
            is_causal = _change(was.causal, now.causal)
        mask = _change(was.mask, now.mask)
        if operator is None:
            sizes = dict(zip(("query", "key", "value"), map(_change, before.dims, after.dims), strict=False))
    if any((operator, is_causal, mask, *sizes.values())):
        yield evidence.AttentionAskedOtherwise(operator, is_causal, mask, **sizes)


def _change(before: T, after: T) -> Change[T] | None:
    return Change(before, after) if before != after else None


def _other_time(a: Activities, b: Activities) -> Iterator[Evidence]:
    """The same library kernel takes clearly longer or shorter, in this place."""
    before, after = (max(_library(side), key=lambda each: each.duration_us, default=None) for side in (a, b))
    if before is None or after is None or before.name != after.name or not before.duration_us:
        return
    if 1 / CLEARLY < after.duration_us / before.duration_us < CLEARLY:
        return
    one, other = before.operator, after.operator
    inputs = None
    if one and other and before.family != "attention" and not same_inputs(one, other):
        inputs = Change(*([dims for dims in each.dims if dims] for each in (one, other)))
    yield evidence.SameKernelOtherTime(before_us=before.duration_us, after_us=after.duration_us, inputs=inputs)
