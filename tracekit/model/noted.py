"""A fact that a file keeps beside the sentence that says it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracekit.model.bounded import Many, Real, Text, Whole

Scalar = Text | bool | Whole | Real | None
Facts = dict[Text, Scalar | Many[Scalar]]


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that was noted while a run was made: its `code`, and its figures and names. `report/words/noted.py`
    says it in English."""

    code: Text
    facts: Facts = field(default_factory=dict)
