"""What notes say: those without which the headline misleads, and the others."""

from collections.abc import Iterable

from tracekit.model.note import Note


def grave_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """Those that stand beside the headline."""
    return note_sentences(note for note in notes if note.grave)


def other_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """Those that do not."""
    return note_sentences(note for note in notes if not note.grave)


def note_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """All notes, in their order."""
    return tuple(note.long() for note in notes)
