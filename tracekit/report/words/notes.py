"""What notes say: those without which the headline misleads, and the others."""

from collections.abc import Iterable
from functools import cache

from tracekit.model.note import Note, NoteStruct
from tracekit.report.words.saying import Sentence, say
from tracekit.wings import load, wings


def grave_sentences(notes: Iterable[Note | NoteStruct]) -> tuple[str, ...]:
    """Those that stand beside the headline."""
    return note_sentences(note for note in notes if note.grave)


def other_sentences(notes: Iterable[Note | NoteStruct]) -> tuple[str, ...]:
    """Those that do not."""
    return note_sentences(note for note in notes if not note.grave)


def note_sentences(notes: Iterable[Note | NoteStruct]) -> tuple[str, ...]:
    """All notes, in their order."""
    return tuple(map(note_sentence, notes))


# Interim, until wings' notes are classes: then `note.long()` says it.


@cache
def sentences_of_wings() -> dict[str, Sentence]:
    """By code."""
    return {code: words for wing in wings() if wing.notes for code, words in load(wing.notes).items()}


def note_sentence(note: Note | NoteStruct) -> str:
    """The note in English."""
    if isinstance(note, Note):
        return note.long()
    return say(sentences_of_wings()[note.code], note.facts, note.subject)
