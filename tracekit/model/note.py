"""Facts that a reader must know before believing a figure, of a comparison or noted while a run was made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from tracekit.model.bounded import Each, Many, Real, Text, Whole, doc

Severity = Literal["info", "warning", "error"]
Scalar = Text | bool | Whole | Real | None
Facts = dict[Text, Scalar | Many[Scalar]]


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that was noted while a run was made."""

    code: Annotated[Text, doc("The kind of fact.")]
    facts: Annotated[Facts, doc("Its figures and names.")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """A fact that bears on figures. `report/words/notes` says it in English."""

    code: Annotated[str, doc("The kind of fact.")]
    severity: Severity = "warning"
    subject: Annotated[str | None, doc("The label of the one side that it is about; else None.")] = None
    facts: Annotated[dict[str, Any], doc("Figures and names, with units in their keys.")] = field(default_factory=dict)
    grave: Annotated[bool, doc("Whether the headline misleads without it.")] = False


def distinct(some: Iterable[Each]) -> tuple[Each, ...]:
    """Each of these notes or facts once, where it stands first: they cannot be hashed, and there are few."""
    found: list[Each] = []
    for each in some:
        if each not in found:
            found.append(each)
    return tuple(found)
