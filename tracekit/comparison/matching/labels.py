"""What a group of kernels is called, and how large its inputs are."""

from collections import Counter
from collections.abc import Sequence

from tracekit.comparison.matching.operators import (
    KIND_OF_FAMILY,
    is_library,
    kind_of_operator,
    library_family,
    plain_name,
    triton_operators,
)
from tracekit.model.comparison import GroupKind
from tracekit.model.groups import GroupLabel, KernelCounts, Label
from tracekit.model.sequence import Activity
from tracekit.names import is_triton

#: At most so many operators are named, and so many inputs.
MOST_NAMES = 4
MOST_INPUTS = 3
#: Operators that only view or prepare, which nobody needs to read.
UNTELLING = ("copy", "to", "view", "reshape", "contiguous", "clone", "_to_copy", "expand", "unsqueeze", "permute")


def label_of(kind: GroupKind, a: Sequence[Activity], b: Sequence[Activity], repeats: float) -> Label:
    """The kernels of both sides and what asked for them; what is unchanged is called by its kernel's name."""
    if kind == "unchanged":
        return _main(a).name
    # Attention has one name, and a long one.
    names = [] if _main(a or b).family == "attention" else _operators(a) or _operators(b)
    counts: list[KernelCounts | None] = []
    for side in (a, b):
        kinds = Counter(KIND_OF_FAMILY[family] for each in side if (family := library_family(each)))
        triton = sum(is_triton(each.name) for each in side)
        counts.append(KernelCounts(len(side), triton, tuple(sorted(kinds.items()))) if side else None)
    return GroupLabel(kind, repeats, counts[0], counts[1], tuple(names[:MOST_NAMES]), len(names) > MOST_NAMES)


def _main(activities: Sequence[Activity]) -> Activity:
    """The library kernel, or else the longest."""
    return max(activities, key=lambda each: (is_library(each), each.duration_us))


def _operators(activities: Sequence[Activity]) -> list[str]:
    """The outermost operators that tell something, as their user knows them, each once, in order; of Triton kernels
    alone the list in their names."""
    found: dict[str, None] = {}
    for each in activities:
        names = [name for name in each.within if not name.startswith("triton_")]
        library = next((name for name in names if kind_of_operator(name)), None)
        telling = (name for name in map(plain_name, names) if name not in UNTELLING)
        found[plain_name(library) if library else next(telling, "")] = None
    found.pop("", None)
    lists = (triton_operators(each.name) for each in activities) if not found else ()
    return list(found) or list(dict.fromkeys(each.strip("_") for each in lists if each))


def sizes_of(activities: Sequence[Activity]) -> str:
    """`512x3072, 3072x3072`: the tensors that the main activity's operator was called with; empty where they were not
    recorded."""
    operator = _main(activities).operator if activities else None
    shapes = ["x".join(map(str, dims)) for dims in operator.dims if dims] if operator else []
    return ", ".join([*shapes[:MOST_INPUTS], *(["..."] if len(shapes) > MOST_INPUTS else [])])
