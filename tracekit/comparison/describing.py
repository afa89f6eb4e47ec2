"""What a group of kernels is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tracekit.comparison.matching.library import KIND_OF_FAMILY, is_library, library_family
from tracekit.comparison.matching.operators import kind_of_operator, short_name, triton_operators
from tracekit.model.comparison import GroupKind
from tracekit.model.sequence import Activity

#: At most so many operators are named.
MOST_NAMES = 4
#: Operators that only view or prepare, which nobody needs to read.
UNTELLING = ("copy", "to", "view", "reshape", "contiguous", "clone", "_to_copy", "expand", "unsqueeze", "permute")


def describe(kind: GroupKind, a: Sequence[Activity], b: Sequence[Activity], repeats: float) -> str:
    """`x38: 14 kernels -> 2 Triton (rms_norm, mul, add)`; what is unchanged is called by its kernel's name."""
    if kind == "unchanged":
        return _main(a).name
    some = a or b
    what = f"{times_word(repeats)}{_side(a)} -> {_side(b)}" if a and b else f"{times_word(repeats)}{_side(some)}"
    only = {"eliminated": ", gone", "added": ", in B only", "unmatched": ", no match"}.get(kind, "")
    # Attention has one name, and a long one.
    names = "" if _main(some).family == "attention" else ", ".join(_operators(a) or _operators(b))
    return f"{what}{only} ({names})" if names else f"{what}{only}"


def times_word(repeats: float) -> str:
    """What a label begins with: `x38: `, nothing where it is once."""
    return "" if repeats == 1 else f"x{repeats:g}: " if repeats == int(repeats) else f"x{repeats:.1f}: "


def _main(activities: Sequence[Activity]) -> Activity:
    """The library kernel, or else the longest."""
    return max(activities, key=lambda each: (is_library(each), each.duration_us))


def _side(activities: Sequence[Activity]) -> str:
    kinds = Counter(KIND_OF_FAMILY[family] for each in activities if (family := library_family(each)))
    count = len(activities)
    noun = "kernel" if count == 1 else "kernels"
    if not kinds:
        triton = sum(each.family == "triton" for each in activities)
        if triton == count:
            return f"{count} Triton"
        return f"{count} {noun}, {triton} of them Triton" if triton else f"{count} {noun}"
    rest = count - kinds.total()
    *most, last = [
        *(kind if number == 1 else f"{number} {kind}s" for kind, number in sorted(kinds.items())),
        *([f"{rest} more"] if rest else []),
    ]
    return f"{', '.join(most)} and {last}" if most else last


def _operators(activities: Sequence[Activity]) -> list[str]:
    """Names of operators, each once, in order; of Triton kernels alone the list in their names."""
    names = dict.fromkeys(_asked_for(each) for each in activities if each.within)
    told = [name for name in names if name and name not in UNTELLING]
    if not told:
        lists = (triton_operators(each.name) for each in activities)
        told = list(dict.fromkeys(each.strip("_") for each in lists if each))
    return [*told[:MOST_NAMES], "..."] if len(told) > MOST_NAMES else told


def _asked_for(activity: Activity) -> str:
    """What was asked for: the outermost operator that tells something, as its user knows it."""
    names = [each for each in activity.within if not each.startswith("triton_")]
    library = next((each for each in names if kind_of_operator(each)), None)
    telling = (name for name in map(short_name, names) if name not in UNTELLING)
    return short_name(library) if library else next(telling, "")
