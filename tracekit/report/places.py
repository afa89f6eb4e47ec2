"""Where in the model a kernel group is, in a few characters: labels alone repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tracekit.model.comparison import KernelGroup
from tracekit.names import printable
from tracekit.report.words.groups import label_words

#: So many modules of one group are named.
MOST_MODULES = 3


def group_place(group: KernelGroup) -> str:
    """`blocks.*.attn.norm_q, .norm_k`: the innermost modules, else the first line; empty where neither is known."""
    modules = list(map(printable, group.modules))
    leaves = [each for each in modules if not any(other.startswith(f"{each}.") for other in modules)]
    if not leaves:
        return next(map(printable, group.where), "")
    first, *others = leaves
    parent = first.rpartition(".")[0]
    near = [f".{each.rpartition('.')[2]}" if each.rpartition(".")[0] == parent else each for each in others]
    more = [f"{len(leaves) - MOST_MODULES} more"] if len(leaves) > MOST_MODULES else []
    return ", ".join([first, *near[: MOST_MODULES - 1], *more])


def distinct_places(groups: Sequence[KernelGroup]) -> tuple[str, ...]:
    """The place of each group; where label and place of several are the same, with sizes, and where these are too, by
    number."""
    places = [group_place(group) for group in groups]
    keys = _told_apart([label_words(group.label) for group in groups], places, [group.sizes for group in groups])
    alike, seen = Counter(keys), Counter[tuple[str, str]]()
    told = []
    for key in keys:
        seen[key] += 1
        number = f"{seen[key]} of {alike[key]} alike" if alike[key] > 1 else ""
        told.append(" \N{MIDDLE DOT} ".join(each for each in (key[1], number) if each))
    return tuple(told)


def _told_apart(labels: Sequence[str], places: Sequence[str], sizes: Sequence[str]) -> list[tuple[str, str]]:
    """Label and place of each, the sizes beside the place where those repeat."""
    repeated = Counter(zip(labels, places, strict=True))
    return [
        (label, " \N{MIDDLE DOT} ".join(each for each in (place, size) if each))
        if repeated[label, place] > 1
        else (label, place)
        for label, place, size in zip(labels, places, sizes, strict=True)
    ]


def clipped_before(text: str, limit: int) -> str:
    """Cut at the front: what tells modules apart is at the end of their paths."""
    return text if len(text) <= limit else f"…{text[len(text) - limit + 1 :]}"
