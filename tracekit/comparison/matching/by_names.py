"""Which kernels of A and of B do the same work, told by names, and by family where names differ? For sides whose
activities are not known one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tracekit.comparison.members import largest_first, time_of
from tracekit.model.comparison import GroupKind, GroupMember, KernelGroup, MatchedBy, Side
from tracekit.model.labels import GroupLabel, Label, NamedFamily

ELEMENT_WISE: NamedFamily = "element_wise"

#: The group of a family whose names differ between the sides. Element-wise work is fused across families, so its
#: families make one group; the others are done by libraries or by the driver and stay apart.
GROUP_OF_FAMILY: dict[str, NamedFamily] = {
    "gemm": "gemm",
    "attention": "attention",
    "convolution": "convolution",
    "communication": "communication",
    "memcpy": "memcpy",
    "memset": "memset",
}

COPIES = (GROUP_OF_FAMILY["memcpy"], GROUP_OF_FAMILY["memset"])


@dataclass(frozen=True, slots=True)
class _PerStep:
    """The kernels or copies of one name, in one step."""

    family: str
    member: GroupMember


@dataclass(frozen=True, slots=True)
class _Leftover:
    """The activities of one group, of both sides, whose names or counts differ."""

    label: NamedFamily
    a: tuple[GroupMember, ...]
    b: tuple[GroupMember, ...]


_Key = tuple[str, str]


def group_by_names(a: Side, b: Side) -> tuple[KernelGroup, ...]:
    """Every kernel and copy of both sides in exactly one group, per step."""
    a_times, b_times = _per_step(a), _per_step(b)
    same = {key for key in a_times if key in b_times and _same_count(a_times[key], b_times[key])}
    groups = [_group("unchanged", key[1], "names", (a_times[key].member,), (b_times[key].member,)) for key in same]
    groups += [_matched_by_family(leftover) for leftover in _leftovers(a_times, b_times, same)]
    return tuple(groups)


def _same_count(a: _PerStep, b: _PerStep) -> bool:
    return math.isclose(a.member.count, b.member.count)


def _per_step(side: Side) -> dict[_Key, _PerStep]:
    """By family and name: a kernel and a memory set may share a name."""
    kernels = side.analysis.kernels.by_name if side.analysis.kernels else ()
    copies = side.analysis.copies.by_name if side.analysis.copies else ()
    return {
        (each.family, each.name): _PerStep(
            each.family, GroupMember(each.name, each.count / side.steps, each.total_us / side.steps)
        )
        for each in (*kernels, *copies)
    }


def _leftovers(a: dict[_Key, _PerStep], b: dict[_Key, _PerStep], same: set[_Key]) -> Iterable[_Leftover]:
    for label in (*GROUP_OF_FAMILY.values(), ELEMENT_WISE):
        a_members, b_members = _members(a, label, same), _members(b, label, same)
        if a_members or b_members:
            yield _Leftover(label, a_members, b_members)


def _members(times: dict[_Key, _PerStep], label: NamedFamily, same: set[_Key]) -> tuple[GroupMember, ...]:
    return tuple(
        time.member
        for key, time in times.items()
        if key not in same and GROUP_OF_FAMILY.get(time.family, ELEMENT_WISE) == label
    )


def _matched_by_family(leftover: _Leftover) -> KernelGroup:
    kind = _kind(leftover)
    if kind == "unmatched":
        return _group(kind, GroupLabel(kind, family=leftover.label), "unmatched", leftover.a, leftover.b)
    return _group(kind, GroupLabel(kind, family=leftover.label), "names", leftover.a, leftover.b)


def _kind(leftover: _Leftover) -> GroupKind:
    """Names cannot tell that work is gone or new: kernels of another family may do it."""
    if not leftover.a or not leftover.b:
        return "unmatched"
    if leftover.label in COPIES and not math.isclose(_count(leftover.a), _count(leftover.b)):
        # Copies do no work that another could do instead: which of them are gone or new, names cannot tell.
        return "unmatched"
    if leftover.label != ELEMENT_WISE:
        return "substituted"
    # Fusion makes fewer kernels. As many or more could be anything (an attention kernel taken apart, say), and names
    # cannot tell, so nothing is claimed.
    return "fused" if _count(leftover.b) < _count(leftover.a) else "unmatched"


def _group(
    kind: GroupKind, label: Label, how: MatchedBy, a: tuple[GroupMember, ...], b: tuple[GroupMember, ...]
) -> KernelGroup:
    a, b = largest_first(a), largest_first(b)
    return KernelGroup(
        kind=kind,
        label=label,
        how=how,
        a=a,
        b=b,
        delta_count=_count(b) - _count(a),
        delta_us=time_of(b) - time_of(a),
        where=(),
        exact=False,
    )


def _count(members: Iterable[GroupMember]) -> float:
    return sum(member.count for member in members)
