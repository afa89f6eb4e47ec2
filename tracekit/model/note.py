"""Facts that a reader must know before believing a figure, of a comparison or noted while a run was made."""

from collections.abc import Iterable
from typing import Any, ClassVar

from msgspec import Struct, field

from tracekit.model.bounded import Each, Text
from tracekit.model.statement import Severity as Severity
from tracekit.model.statement import Statement


class WrittenNoted(Struct, frozen=True):
    """Something that was noted while a run was made."""

    code: Text  #: The kind of fact.
    facts: dict[Text, Any] = field(default_factory=dict)  #: Its figures and names, or another noted fact.


class Noted(Statement):
    """Something that was noted while a run was made.

    Files hold it: facts are of bounded types, and `tracekit.wire` reads it.
    """

    as_written = WrittenNoted

    def written(self) -> WrittenNoted:
        return WrittenNoted(self.code, self.facts)

    @classmethod
    def as_held(cls, facts: dict[str, object]) -> dict[str, object]:
        """Facts of a file as the class has them."""
        return facts


class WrittenNote(Struct, frozen=True):
    """A fact that bears on figures, as JSON holds it."""

    code: str  #: The kind of fact.
    severity: Severity
    subject: str | None  #: The label of the one side that it is about; else None.
    facts: dict[str, Any]  #: Figures and names, with units in their keys.
    grave: bool  #: Whether the headline misleads without it.


class Note(Statement):
    """A fact that bears on figures. A class has a `subject` where it is about one side."""

    as_written = WrittenNote
    beside = ("subject",)
    #: Whether the headline misleads without it.
    grave: ClassVar[bool] = False
    #: Of a wing's note: whether the first screen has it too, behind what ranks did.
    on_first_screen: ClassVar[bool] = False

    def written(self) -> WrittenNote:
        subject: str | None = getattr(self, "subject", None)
        return WrittenNote(self.code, self.severity, subject, self.facts, self.grave)


def distinct(some: Iterable[Each]) -> tuple[Each, ...]:
    """Each of these notes or facts once, where it stands first: they cannot be hashed, and there are few."""
    found: list[Each] = []
    for each in some:
        if each not in found:
            found.append(each)
    return tuple(found)


def grave_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """Those that stand beside the headline."""
    return note_sentences(note for note in notes if note.grave)


def other_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """Those that do not."""
    return note_sentences(note for note in notes if not note.grave)


def note_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """All notes, in their order."""
    return tuple(note.long() for note in notes)
