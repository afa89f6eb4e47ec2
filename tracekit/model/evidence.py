"""What shows that a library kernel was exchanged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from tracekit.model.bounded import doc

EvidenceKind = Literal[
    "attention_lost",
    "single_precision",
    "epilogue_lost",
    "other_operator",
    "inputs_prepared",
    "split_along_k",
    "other_kernel",
    "channels_moved_last",
    "attention_asked_otherwise",
    "same_kernel_other_time",
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that differs between the two sides of a group. `report/words/groups.py` says it in English."""

    kind: EvidenceKind
    facts: Annotated[dict[str, Any], doc("Figures and names, with units in their keys.")] = field(default_factory=dict)
