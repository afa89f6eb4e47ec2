"""What became of kernels? docs/kinds.md has the rules in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tracekit.comparison.matching.epilogues import asks_for_other_work
from tracekit.comparison.matching.inputs import same_kernel
from tracekit.comparison.matching.library import is_library
from tracekit.comparison.matching.operators import without_number
from tracekit.model.comparison import GroupKind
from tracekit.model.sequence import Activity


def kind_of(a: Sequence[Activity], b: Sequence[Activity]) -> GroupKind:
    """Of kernels that belong together: what A's have become in B."""
    if not b:
        return "eliminated"
    if not a:
        return "added"
    a_left, b_left = without_same(a, b)
    changed = _asks_for_other_work(a, b)
    if not a_left and not b_left:
        return "substituted" if changed else "unchanged"
    a_library, b_library = (sum(map(is_library, left)) for left in (a_left, b_left))
    if a_library and b_library:
        beside = _by_number(len(a_left), len(b_left)) if changed else None
        return _by_number(a_library, b_library) or beside or "substituted"
    return _by_number(len(a_left), len(b_left)) or ("fused" if _generated(b_left) else "substituted")


def without_same(a: Sequence[Activity], b: Sequence[Activity]) -> tuple[list[Activity], list[Activity]]:
    """What is left of both sides once the kernels that are the same on both are taken away, one for one."""
    free: dict[str, list[int]] = defaultdict(list)
    for j, each in enumerate(b):
        free[without_number(each.name)].append(j)
    left: list[Activity] = []
    for each in a:
        candidates = free[without_number(each.name)]
        same = next((j for j in candidates if same_kernel(each, b[j])), None)
        if same is None:
            left.append(each)
        else:
            candidates.remove(same)
    return left, [b[j] for j in sorted(j for some in free.values() for j in some)]


def _asks_for_other_work(a: Sequence[Activity], b: Sequence[Activity]) -> bool:
    """Whether library calls, as many on both sides, add or apply an activation on one side alone."""
    one, other = ([each for each in side if is_library(each)] for side in (a, b))
    return len(one) == len(other) and any(map(asks_for_other_work, one, other))


def _by_number(before: int, after: int) -> GroupKind | None:
    return "fused" if after < before else "defused" if after > before else None


def _generated(activities: Sequence[Activity]) -> bool:
    """Whether Inductor wrote one of them; its templates of library kernels aside."""
    return any(each.family == "triton" and not is_library(each) for each in activities)
