"""Which module of the model gained or lost GPU time?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile

from tracekit.model.comparison import KernelGroup
from tracekit.model.groups import ModuleTime

Path = tuple[str, ...]


def time_by_module(groups: Sequence[KernelGroup]) -> ModuleTime | None:
    """The root of the model's modules, whose figures are the sums of all `groups` but communication, which is nobody's
    work alone; None where no group has a module.

    Numbers of blocks are `*` where blocks of that list do the same work. A module that holds one other, and does
    nothing itself, is left out.
    """
    named = {
        at: [tuple(each.split(".")) for each in group.modules]
        for at, group in enumerate(groups)
        if group.kind != "communication"
    }
    if not any(named.values()):
        return None
    repeated = {path[:at] for paths in named.values() for path in paths for at, part in enumerate(path) if part == "*"}
    own: dict[Path, list[int]] = {}
    for at, paths in named.items():
        starred = (_starred(path, repeated) for path in paths)
        # The module that holds all of them; the root where there are none.
        shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*starred, strict=False))
        own.setdefault(tuple(parts[0] for parts in shared), []).append(at)
    return _node((), own, groups)


def _starred(path: Path, repeated: set[Path]) -> Path:
    """The path with `*` for numbers in lists some of whose blocks are told together."""
    starred: Path = ()
    for part in path:
        starred += ("*" if part.isdecimal() and starred in repeated else part,)
    return starred


def is_within(module: str, part: str) -> bool:
    """Whether the module is the part, or in it."""
    return module == part or module.startswith(f"{part}.")


def _node(path: Path, own: Mapping[Path, Sequence[int]], groups: Sequence[KernelGroup]) -> ModuleTime:
    below: dict[Path, dict[Path, Sequence[int]]] = {}
    for each, at in own.items():
        if each != path:
            below.setdefault(each[: len(path) + 1], {})[each] = at
    if path and len(below) == 1 and path not in own:
        ((child, of_child),) = below.items()
        return _node(child, of_child, groups)
    held = [groups[at] for some in own.values() for at in some]
    a, b = [m for group in held for m in group.a], [m for group in held for m in group.b]
    children = (_node(child, of_child, groups) for child, of_child in below.items())
    return ModuleTime(
        path=".".join(path),
        a_us=math.fsum(each.total_us for each in a),
        b_us=math.fsum(each.total_us for each in b),
        delta_us=math.fsum(group.delta_us for group in held),
        a_kernels=math.fsum(each.count for each in a),
        b_kernels=math.fsum(each.count for each in b),
        groups=tuple(sorted(own.get(path, ()), key=lambda at: -abs(groups[at].delta_us))),
        children=tuple(sorted(children, key=lambda child: -abs(child.delta_us))),
    )
