"""A fact that a file keeps beside the sentence that says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from tracekit.model.bounded import Many, Real, Text, Whole, doc

Scalar = Text | bool | Whole | Real | None
Facts = dict[Text, Scalar | Many[Scalar]]


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that was noted while a run was made."""

    code: Annotated[Text, doc("The kind of fact.")]
    facts: Annotated[Facts, doc("Its figures and names.")] = field(default_factory=dict)
