"""What a group of kernels is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tracekit.comparison.matching.library import KIND_OF_FAMILY, is_library, library_family
from tracekit.comparison.matching.operators import kind_of_operator, short_name, triton_operators
from tracekit.model.comparison import GroupKind
from tracekit.model.labels import GroupLabel, KernelCounts, Label
from tracekit.model.sequence import Activity

#: At most so many operators are named.
MOST_NAMES = 4
#: Operators that only view or prepare, which nobody needs to read.
UNTELLING = ("copy", "to", "view", "reshape", "contiguous", "clone", "_to_copy", "expand", "unsqueeze", "permute")


def describe(kind: GroupKind, a: Sequence[Activity], b: Sequence[Activity], repeats: float) -> Label:
    """The kernels of both sides and what asked for them; what is unchanged is called by its kernel's name."""
    if kind == "unchanged":
        return _main(a).name
    # Attention has one name, and a long one.
    names = [] if _main(a or b).family == "attention" else _operators(a) or _operators(b)
    before, after = (_counts(side) if side else None for side in (a, b))
    return GroupLabel(kind, repeats, before, after, tuple(names[:MOST_NAMES]), len(names) > MOST_NAMES)


def _main(activities: Sequence[Activity]) -> Activity:
    """The library kernel, or else the longest."""
    return max(activities, key=lambda each: (is_library(each), each.duration_us))


def _counts(activities: Sequence[Activity]) -> KernelCounts:
    kinds = Counter(KIND_OF_FAMILY[family] for each in activities if (family := library_family(each)))
    triton = sum(each.family == "triton" for each in activities)
    return KernelCounts(len(activities), triton, tuple(sorted(kinds.items())))


def _operators(activities: Sequence[Activity]) -> list[str]:
    """Names of operators, each once, in order; of Triton kernels alone the list in their names."""
    names = dict.fromkeys(_asked_for(each) for each in activities if each.within)
    told = [name for name in names if name and name not in UNTELLING]
    if not told:
        lists = (triton_operators(each.name) for each in activities)
        told = list(dict.fromkeys(each.strip("_") for each in lists if each))
    return told


def _asked_for(activity: Activity) -> str:
    """What was asked for: the outermost operator that tells something, as its user knows it."""
    names = [each for each in activity.within if not each.startswith("triton_")]
    library = next((each for each in names if kind_of_operator(each)), None)
    telling = (name for name in map(short_name, names) if name not in UNTELLING)
    return short_name(library) if library else next(telling, "")
