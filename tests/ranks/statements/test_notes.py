"""What each note on recordings of ranks says: read the snapshot when it changes."""

from syrupy.assertion import SnapshotAssertion

from tracekit.ranks.job_figures import RankNote
from tracekit.ranks.statements import notes

EVERY: tuple[RankNote, ...] = (
    notes.OtherJob("b.json", rank=2, size=1024, usual_size=2048),
    notes.OtherTime("b.json", rank=2, apart_us=-86_400e6),
    notes.OtherTime("b.json", rank=2, apart_us=1200e6),
    notes.Foreign("b.json", rank=2),
    notes.Unreadable(reason="b.json: it is empty"),
    notes.RankUnknown("b.json"),
    notes.RankTwice("b.json", rank=2, kept="a.json"),
    notes.RanksNumbered(count=4),
    notes.RankDamaged("b.json", rank=2, truncated=True, skipped=0),
    notes.RankDamaged("b.json", rank=2, truncated=False, skipped=3),
    notes.WithOperators(),
    notes.StepsDiffer(usual=4, ranks=[1, 2, 3, 7]),
    notes.RanksMissing(missing=1, size=2048, ranks=(5,)),
    notes.RanksMissing(missing=9, size=2048, ranks=(5, *range(8, 16))),
    notes.OneRank(rank=0, size=None),
    notes.NotTested(steps=1, least=3),
    notes.NoCollectives(),
    notes.ClocksUnknown(hosts=2),
    notes.StartSkew(rank=1, most_us=2.5e6),
    notes.PartsMissing(count=3, of=40),
    notes.UnmatchedCollectives(count=8, total_us=800.0, reason="counts_differ", of=12),
    notes.UnmatchedCollectives(count=1, total_us=800.0, reason="missing_rank", of=12),
)


def test_every_note_reads_well(snapshot: SnapshotAssertion) -> None:
    assert [(each.code, each.severity, each.long()) for each in EVERY] == snapshot


def test_every_note_is_here() -> None:
    assert {*map(type, EVERY)} == {*RankNote.classes.values()}


def test_files_that_are_left_out_are_counted_by_what_is_wrong_with_them(snapshot: SnapshotAssertion) -> None:
    assert {each.code: each.fault for each in EVERY if each.fault} == snapshot


def test_a_note_of_a_file_is_written_with_it_as_its_subject() -> None:
    written = notes.RankTwice("b.json", rank=2, kept="a.json").written()
    assert (written.subject, written.facts) == ("b.json", {"rank": 2, "kept": "a.json"})
    assert notes.OneRank(rank=0, size=None).written().facts == {"rank": 0, "size": None}
