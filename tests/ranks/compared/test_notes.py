"""What notes on the ranks of a comparison say: read the snapshot when it changes."""

import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.model.note import Note
from tracekit.ranks.compared import statements
from tracekit.ranks.compared.statements import RankCollectives
from tracekit.report.words.short import headline_notes
from tracekit.statements.notes.recordings import CpuRun
from tracekit.statements.notes.work import RanEager

FEWER = RankCollectives(
    "compiled", ranks=[1], of_ranks=8, collective="all_reduce", count=3, usual_count=2, in_place_of=None
)
EVERY = (FEWER, FEWER.but(in_place_of="all_gather"), FEWER.but(ranks=[1, 3], count=1))


@pytest.mark.parametrize("note", EVERY)
def test_a_note_says(note: Note, snapshot: SnapshotAssertion) -> None:
    assert (note.long(), note.short()) == snapshot


def test_every_note_is_here() -> None:
    assert {*map(type, EVERY)} == {each for each in Note.classes.values() if each.__module__ == statements.__name__}


def test_on_the_first_screen_it_stands_behind_what_makes_the_figures_worth_nothing() -> None:
    graver, other = RanEager(None), CpuRun()
    for note in EVERY:
        told = headline_notes((other, note, graver))
        assert told == (*headline_notes((graver,)), note.short(), *headline_notes((other,)))
