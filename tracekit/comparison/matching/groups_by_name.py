"""Which kernels of A and of B do the same work, told by names, and by family where names differ? For sides whose
activities are not known one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tracekit.model.comparison import GroupKind, GroupMember, KernelGroup, Side
from tracekit.model.groups import GroupLabel, Label, NamedFamily

#: The families that libraries or the driver do, a group each where names differ between the sides. Element-wise work is
#: fused across families, so all other families make one group.
FAMILIES: tuple[NamedFamily, ...] = ("gemm", "attention", "convolution", "communication", "memcpy", "memset")
ELEMENT_WISE: NamedFamily = "element_wise"

Members = tuple[GroupMember, ...]


def group_by_names(a: Side, b: Side) -> tuple[KernelGroup, ...]:
    """Every kernel and copy of both sides in exactly one group, per step."""
    a_members, b_members = _per_step(a), _per_step(b)
    same = {key for key in a_members if key in b_members and math.isclose(a_members[key].count, b_members[key].count)}
    groups = [_group("unchanged", key[1], (a_members[key],), (b_members[key],)) for key in same]
    for family in (*FAMILIES, ELEMENT_WISE):
        one, other = (
            tuple(
                member
                for key, member in members.items()
                if key not in same and (key[0] if key[0] in FAMILIES else ELEMENT_WISE) == family
            )
            for members in (a_members, b_members)
        )
        if one or other:
            kind = _kind(family, one, other)
            groups.append(_group(kind, GroupLabel(kind, family=family), one, other))
    return tuple(groups)


def _per_step(side: Side) -> dict[tuple[str, str], GroupMember]:
    """By family and name: a kernel and a memory set may share a name."""
    kernels = side.analysis.kernels.by_name if side.analysis.kernels else ()
    copies = side.analysis.copies.by_name if side.analysis.copies else ()
    return {
        (each.family, each.name): GroupMember(each.name, each.count / side.steps, each.total_us / side.steps)
        for each in (*kernels, *copies)
    }


def _kind(family: NamedFamily, a: Members, b: Members) -> GroupKind:
    """Names cannot tell that work is gone or new: kernels of another family may do it."""
    if not a or not b:
        return "unmatched"
    if family in ("memcpy", "memset") and not math.isclose(_count(a), _count(b)):
        # Copies do no work that another could do instead: which of them are gone or new, names cannot tell.
        return "unmatched"
    if family != ELEMENT_WISE:
        return "substituted"
    # Fusion makes fewer kernels. As many or more could be anything (attention that was decomposed, say), and names
    # cannot tell, so nothing is claimed.
    return "fused" if _count(b) < _count(a) else "unmatched"


def _group(kind: GroupKind, label: Label, a: Members, b: Members) -> KernelGroup:
    a, b = largest_first(a), largest_first(b)
    return KernelGroup(
        kind=kind,
        label=label,
        how="unmatched" if kind == "unmatched" else "names",
        a=a,
        b=b,
        delta_count=_count(b) - _count(a),
        delta_us=time_of(b) - time_of(a),
        where=(),
        exact=False,
    )


def _count(members: Iterable[GroupMember]) -> float:
    return sum(member.count for member in members)


def largest_first(members: Iterable[GroupMember]) -> Members:
    return tuple(sorted(members, key=lambda member: (-member.total_us, member.name)))


def time_of(members: Iterable[GroupMember]) -> float:
    """Microseconds per step."""
    return math.fsum(member.total_us for member in members)
