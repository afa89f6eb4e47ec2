"""What a note says: its code's sentence, of its subject and its facts."""

from collections.abc import Iterable
from functools import cache

from tracekit.model.note import Note, NoteStruct
from tracekit.report.words.notes.comparisons import SENTENCES as SENTENCES
from tracekit.report.words.saying import Sentence, say
from tracekit.wings import load, wings


@cache
def every_sentence() -> dict[str, Sentence]:
    """Those of the core and of wings, by code."""
    of_wings = [load(wing.notes) for wing in wings() if wing.notes]
    return SENTENCES | {code: words for notes in of_wings for code, words in notes.items()}


def note_sentence(note: Note | NoteStruct) -> str:
    """The note in English."""
    if isinstance(note, Note):
        return note.long()
    sentences = SENTENCES if note.code in SENTENCES else every_sentence()
    return say(sentences[note.code], note.facts, note.subject)


def note_sentences(notes: Iterable[Note | NoteStruct]) -> tuple[str, ...]:
    """All notes, in their order."""
    return tuple(map(note_sentence, notes))


def grave_sentences(notes: Iterable[Note | NoteStruct]) -> tuple[str, ...]:
    """Those that stand beside the headline."""
    return note_sentences(note for note in notes if note.grave)


def other_sentences(notes: Iterable[Note | NoteStruct]) -> tuple[str, ...]:
    """Those that do not."""
    return note_sentences(note for note in notes if not note.grave)
