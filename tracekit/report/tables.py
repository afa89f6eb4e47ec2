"""Kernel groups as rows, for spreadsheets and notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tracekit.model.comparison import Comparison, GroupMember, KernelGroup
from tracekit.report.words.groups import evidence_sentences, label_words

#: What every file has, whatever is known of its groups.
GROUP_COLUMNS: dict[str, type] = {
    "group": int,
    "kind": str,
    "label": str,
    "matched_by": str,
    "repeats": float,
    "a_count": float,
    "b_count": float,
    "a_us": float,
    "b_us": float,
    "delta_count": float,
    "delta_us": float,
    "a_bytes": float,
    "b_bytes": float,
    "where": str,
    "a_kernels": str,
    "b_kernels": str,
    "evidence": str,
}
#: Between several names in one cell.
BETWEEN = "; "


def group_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One row a group, largest change first; counts and microseconds per step, bytes and rates as estimated."""
    return [_row(number, group) for number, group in enumerate(comparison.groups, 1)]


def _row(number: int, group: KernelGroup) -> dict[str, Any]:
    traffic = group.traffic
    return {
        "group": number,
        "kind": group.kind,
        "label": label_words(group.label),
        "matched_by": group.how,
        "repeats": float(group.repeats),
        "a_count": _sum(member.count for member in group.a),
        "b_count": _sum(member.count for member in group.b),
        "a_us": _sum(member.total_us for member in group.a),
        "b_us": _sum(member.total_us for member in group.b),
        "delta_count": float(group.delta_count),
        "delta_us": float(group.delta_us),
        "a_bytes": traffic.eager_bytes if traffic else None,
        "b_bytes": traffic.compiled_bytes if traffic else None,
        "where": BETWEEN.join(group.where),
        "a_kernels": _names(group.a),
        "b_kernels": _names(group.b),
        "evidence": BETWEEN.join(evidence_sentences(group.evidence)),
    }


def _sum(numbers: Iterable[float]) -> float:
    return math.fsum(numbers)


def _names(members: Iterable[GroupMember]) -> str:
    return BETWEEN.join(member.name for member in members)
