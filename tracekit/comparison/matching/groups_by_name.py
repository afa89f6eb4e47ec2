"""Which kernels of A and of B do the same work, told by names, and by family where names differ? For sides whose
activities are not known one by one."""

import math
from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace

from tracekit.model.comparison import GroupKind, GroupMember, KernelGroup, MatchedBy, Side
from tracekit.model.groups import GroupLabel, Label, NamedFamily

#: The families that libraries or the driver do, a group each where names differ between the sides. Element-wise work is
#: fused across families, so all other families make one group.
FAMILIES: tuple[NamedFamily, ...] = ("gemm", "attention", "convolution", "memcpy", "memset")
ELEMENT_WISE: NamedFamily = "element_wise"
#: A family, and the kind of the group that holds all of it.
COMMUNICATION: Literal["communication"] = "communication"
#: How groups of these kinds are told; those of all others by names.
HOW: dict[GroupKind, MatchedBy] = {"unmatched": "unmatched", "communication": "family"}


def group_by_names(a: Side, b: Side) -> tuple[KernelGroup, ...]:
    """Every kernel and copy of both sides in exactly one group, per step."""
    a_every, b_every = _per_step(a), _per_step(b)
    apart = [[each for (family, _), each in some.items() if family == COMMUNICATION] for some in (a_every, b_every)]
    a_members, b_members = (
        {key: each for key, each in some.items() if key[0] != COMMUNICATION} for some in (a_every, b_every)
    )
    same = {key for key in a_members if key in b_members and math.isclose(a_members[key].count, b_members[key].count)}
    groups = [_group("unchanged", key[1], (a_members[key],), (b_members[key],)) for key in same]
    by_family: dict[NamedFamily, tuple[list[GroupMember], list[GroupMember]]] = {}
    for number, members in enumerate((a_members, b_members)):
        for key, member in members.items():
            if key not in same:
                family = next((each for each in FAMILIES if each == key[0]), ELEMENT_WISE)
                by_family.setdefault(family, ([], []))[number].append(member)
    for family, (one, other) in by_family.items():
        kind: GroupKind = "substituted"
        copies = family in ("memcpy", "memset")
        # Names cannot tell that work is gone or new: kernels of another family may do it. Copies do no work that
        # another could do instead, but which of them are gone or new, names cannot tell either.
        if not one or not other or (copies and not math.isclose(_count(one), _count(other))):
            kind = "unmatched"
        elif family == ELEMENT_WISE:
            # Fusion makes fewer kernels. As many or more could be anything (attention that was decomposed, say).
            kind = "fused" if _count(other) < _count(one) else "unmatched"
        groups.append(_group(kind, GroupLabel(kind, family=family), one, other))
    return (*groups, *group_communication(apart[0], apart[1]))


def group_communication(
    a: Iterable[GroupMember], b: Iterable[GroupMember], a_at: tuple[int, ...] = (), b_at: tuple[int, ...] = ()
) -> tuple[KernelGroup, ...]:
    """All communication of both sides as one group, if there is any: how long a collective takes, and which kernel it
    is, other ranks decide too. `a_at` and `b_at` are places in the sides' sequences."""
    group = _group(COMMUNICATION, GroupLabel(COMMUNICATION, family=COMMUNICATION), a, b)
    return (replace(group, exact=True, a_at=a_at, b_at=b_at),) if group.a or group.b else ()


def _per_step(side: Side) -> dict[tuple[str, str], GroupMember]:
    """By family and name: a kernel and a memory set may share a name."""
    kernels = side.analysis.kernels.by_name if side.analysis.kernels else ()
    copies = side.analysis.copies.by_name if side.analysis.copies else ()
    return {
        (each.family, each.name): GroupMember(each.name, each.count / side.steps, each.total_us / side.steps)
        for each in (*kernels, *copies)
    }


def _group(kind: GroupKind, label: Label, *sides: Iterable[GroupMember]) -> KernelGroup:
    a, b = map(largest_first, sides)
    return KernelGroup(
        kind=kind,
        label=label,
        how=HOW.get(kind, "names"),
        a=a,
        b=b,
        delta_count=_count(b) - _count(a),
        delta_us=time_of(b) - time_of(a),
        where=(),
        exact=False,
    )


def _count(members: Iterable[GroupMember]) -> float:
    return sum(member.count for member in members)


def largest_first(members: Iterable[GroupMember]) -> tuple[GroupMember, ...]:
    return tuple(sorted(members, key=lambda member: (-member.total_us, member.name)))


def time_of(members: Iterable[GroupMember]) -> float:
    """Microseconds per step."""
    return math.fsum(member.total_us for member in members)
