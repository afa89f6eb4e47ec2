"""Which modules the change of GPU time is in: the few that make most of it, and what is left."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from msgspec.structs import replace

from tracekit.model.comparison import Comparison, KernelGroup
from tracekit.model.groups import GroupLabel, ModuleTime
from tracekit.numbers import count, counted, figure_change, scale_of
from tracekit.report.document import Tree, TreeNode
from tracekit.report.sections.groups import group_label
from tracekit.report.words.common import is_on_cpu, shared_scope
from tracekit.report.words.groups import operators_word
from tracekit.statements.evidence import AttentionLost

#: Parts that are named where there is little room, and the share of the largest change that each has at least.
MOST, LEAST_SHARE = 3, 0.05
#: A module of which one thing makes so much of the change, and not all of it, is told as a whole.
MAINLY, WHOLLY = 0.67, 0.95
#: It is told in parts where those that find room make so much of what its parts gained and lost.
MOSTLY = 0.7
#: Groups of a module that are listed one by one.
MOST_LEAVES = 12
#: Rows that are open at first.
MOST_OPEN = 12
#: What is added up of a group's kernels.
TOTALS = ("total_us", "count")
#: A group makes most of a part's change from this share of it on.
MOST_OF_IT = 0.6
#: As many kernels, within so much of them, are as many.
FEW = 0.02


class OwnWork(ModuleTime, frozen=True):
    """What a module does besides its parts, under its path."""

    what: str = ""  #: What is done there.


def main_parts(comparison: Comparison, most: int) -> list[tuple[str, ModuleTime]]:
    """The parts that make most of the change of GPU time, the largest change first, under their paths without what all
    have in common. Nothing where no module is known."""
    root = comparison.modules
    if root is None:
        return []
    parts, done = [root], set[str]()
    while split := next((each for each in _by_change(parts) if each.path not in done), None):
        done.add(split.path)
        pieces = _pieces(split, comparison.groups)
        large = [each for each in pieces if abs(each.delta_us) >= LEAST_SHARE * abs(pieces[0].delta_us)]
        share = large[0].delta_us / split.delta_us if large and split.delta_us else 0.0
        others = [each for each in parts if each is not split]
        found = _by_change([*others, *large])
        # What the whole model does besides one module has no name.
        told = [*others, large[0]] if large and not split.path and MAINLY <= share < WHOLLY else found[:most]
        is_one_thing = len(large) == 1 and isinstance(large[0], OwnWork)
        if (
            large
            and not is_one_thing
            and not (MAINLY <= share < WHOLLY and split.path)
            and _moved(told) >= MOSTLY * _moved(found)
        ):
            parts = told
    if parts == [root]:
        return []
    parts = _by_change(parts)
    # The last name always stays, and the `*` of blocks that repeat with it.
    paths = [re.split(r"\.(?!\*)", part.path) for part in parts]
    columns = zip(*(path[:-1] for path in paths), strict=False)
    shared = len([*takewhile(lambda names: len(set(names)) == 1, columns)])
    return [(".".join(path[shared:]), part) for path, part in zip(paths, parts, strict=True)]


def main_child(part: ModuleTime) -> ModuleTime | None:
    """The module that makes most of the change of a part, but not all of it; None where there is none."""
    children = _by_change(part.children)
    share = children[0].delta_us / part.delta_us if children and part.delta_us else 0.0
    return children[0] if MAINLY <= share < WHOLLY else None


def module_tree(comparison: Comparison) -> Tree | None:
    """Every module, opening down to groups of kernels, of CPU runs of operators; None where no module is known."""
    root = comparison.modules
    if root is None:
        return None
    time, every, counts, profiled = (
        ("Operator", "all operators", "outermost operators", " with profiler")
        if is_on_cpu(comparison)
        else ("GPU", "all GPU work", "kernels and copies", "")
    )
    modules = list(_every(root))
    unit, scale, decimals = scale_of(max(max(each.a_us, each.b_us) for each in modules))
    largest = max(abs(each.delta_us) for each in modules[1:] or modules) or 1.0

    def figures(a_us: float, b_us: float, delta_us: float, a_kernels: float, b_kernels: float) -> tuple[str, ...]:
        times = (f"{us / scale:,.{decimals}f}" for us in (a_us, b_us))
        return (*times, figure_change(delta_us / scale, decimals), f"{count(a_kernels)} → {count(b_kernels)}")

    def leaf(at: int) -> TreeNode:
        group = comparison.groups[at]
        of_sides = [[math.fsum(getattr(each, name) for each in side) for side in (group.a, group.b)] for name in TOTALS]
        (a_us, b_us), (a_kernels, b_kernels) = of_sides
        told = figures(a_us, b_us, group.delta_us, a_kernels, b_kernels)
        return TreeNode(group_label(group), told, group.delta_us / largest, group=at)

    def node(module: ModuleTime, above: str) -> TreeNode:
        name = module.path.removeprefix(f"{above}.") or every
        children = [node(child, module.path) for child in module.children]
        leaves = [leaf(at) for at in module.groups[:MOST_LEAVES]]
        if left := module.groups[MOST_LEAVES:]:
            us = math.fsum(comparison.groups[at].delta_us for at in left)
            change = figure_change(us / scale, decimals)
            leaves.append(TreeNode(counted(len(left), "smaller group"), ("", "", change, ""), us / largest))
        if children and leaves:
            own = _left(module, "", module.children)
            told = figures(own.a_us, own.b_us, own.delta_us, own.a_kernels, own.b_kernels)
            itself = f"{name} itself" if module.path else "of no module"
            leaves = [TreeNode(itself, told, own.delta_us / largest, tuple(leaves))]
        told = figures(module.a_us, module.b_us, module.delta_us, module.a_kernels, module.b_kernels)
        share = module.delta_us / largest
        return TreeNode(name, told, share, (*children, *leaves))

    top = _opened(node(root, ""))
    heads = (f"{comparison.a.label}, {unit}{profiled}", comparison.b.label, "change", counts)
    return Tree(f"{time} time by module{profiled}, {shared_scope(comparison)}", "Module", heads, (top,))


def _opened(node: TreeNode, rows: int = MOST_OPEN) -> TreeNode:
    """The same, open down to where the change parts, as far as there is room for its rows."""
    modules = [each for each in node.children if each.group is None and each.children]
    if len(node.children) > rows:
        return replace(node, is_open=rows == MOST_OPEN)
    largest = max(modules, key=lambda each: abs(each.share), default=None)
    children = tuple(_opened(each, rows - len(node.children)) if each is largest else each for each in node.children)
    return replace(node, children=children, is_open=True)


def _every(module: ModuleTime) -> Iterator[ModuleTime]:
    yield module
    for child in module.children:
        yield from _every(child)


def part_words(part: ModuleTime, groups: Sequence[KernelGroup]) -> str:
    """What became of its kernels: `fused attention lost`, `20,064 → 3,192 kernels`; empty where they are as many."""
    found = [groups[at] for each in _every(part) for at in each.groups]
    if any(isinstance(each, AttentionLost) for group in found for each in group.evidence):
        return "fused attention lost"
    if abs(part.b_kernels - part.a_kernels) < FEW * part.a_kernels:
        return ""
    return f"{count(part.a_kernels)} → {count(part.b_kernels)} kernels"


def main_work(part: ModuleTime, groups: Sequence[KernelGroup]) -> str:
    """What became of the kernels of the one group that makes most of its change, `20 kernels → 1 (rms_norm, ...)`; else
    as `part_words`."""
    found = [groups[at] for each in _every(part) for at in each.groups]
    main = max(found, key=lambda group: group.delta_us / part.delta_us if part.delta_us else 0.0, default=None)
    if main is None or not part.delta_us or main.delta_us / part.delta_us < MOST_OF_IT:
        return part_words(part, groups)
    label = main.label
    if not isinstance(label, GroupLabel) or label.before is None or label.after is None or label.family is not None:
        return part_words(part, groups)
    operators = f" ({', '.join([*label.operators[:1], *(['...'] if label.operators[1:] else [])])})"
    work = f"{counted(label.before.count, 'kernel')} → {label.after.count}"
    return f"{work}{operators}" if label.operators else work


def _left(whole: ModuleTime, what: str, parts: Sequence[ModuleTime]) -> OwnWork:
    a_us, b_us, a_kernels, b_kernels = (
        getattr(whole, name) - math.fsum(getattr(each, name) for each in parts)
        for name in ("a_us", "b_us", "a_kernels", "b_kernels")
    )
    return OwnWork(whole.path, a_us, b_us, b_us - a_us, a_kernels, b_kernels, (), (), what)


def _by_change(parts: Iterable[ModuleTime]) -> list[ModuleTime]:
    return sorted(parts, key=lambda part: -abs(part.delta_us))


def _moved(parts: Sequence[ModuleTime]) -> float:
    return math.fsum(abs(part.delta_us) for part in parts)


def _pieces(module: ModuleTime, groups: Sequence[KernelGroup]) -> list[ModuleTime]:
    """The modules in it, and what it does itself; the largest change first."""
    pieces = [*module.children]
    if module.groups and pieces:
        label = groups[module.groups[0]].label
        what = operators_word(label) if isinstance(label, GroupLabel) else ""
        pieces.append(_left(module, what or "own work", pieces))
    return _by_change(pieces)
