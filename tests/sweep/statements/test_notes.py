"""What each note on a sweep says: read the snapshot when it changes."""

from syrupy.assertion import SnapshotAssertion

from tracekit.model.note import Note
from tracekit.sweep.statements import notes

DRIVERS = ["driver: 580.1, 590.1"]
EVERY = (
    notes.CellUnreadable(path="sweeps/vit/cells/one.json", reason="it ends early"),
    notes.CellsOutdated(cells=1, of_cells=4, since="2026-11-21T19:00:00+00:00"),
    notes.CellsOfAnotherVersion(cells=1, workload="vit", files=["vit.py"]),
    notes.CellsOfAnotherVersion(cells=2, workload="vit", files=["vit.py", "inputs.py"]),
    notes.SeveralSeeds(seeds=[0, 1]),
    notes.SeveralMachines(machines=["NVIDIA H200", "NVIDIA A100"]),
    notes.SeveralTorches(versions=["2.11.0", "2.12.0"]),
    notes.SeveralTimingRules(),
    notes.SeveralTracekits(versions=["0.1.0", "0.2.0"]),
    notes.SameCellInFiles(key="vit-1", files=2),
    notes.MachinesOfAWorkDiffer(differences=DRIVERS, works=1, of_works=2),
    notes.ProcessesNotPooled(cells=1, of_cells=2, differences=DRIVERS),
    notes.ProcessesShareHosts(cells=2, of_cells=3),
    notes.ProcessWithoutTimes(process=2, outcome="killed", message="the Ray worker that worked on it died"),
    notes.CellsSideBySide(cells=2, of_cells=3),
    notes.CellsThrottled(cells=1, of_cells=2),
    notes.GraphsFromCache(hits=1, graphs=3, cache_was_empty=True),
    notes.GraphsFromCache(hits=3, graphs=3, cache_was_empty=True),
    notes.GraphsFromCache(hits=1, graphs=3, cache_was_empty=False),
    notes.GraphsFromCache(hits=4, graphs=3, cache_was_empty=None),
    notes.CacheNotEmpty(),
    notes.EagerProcessSpread(work="vit, batch 1", spread=0.272),
)


def test_every_note_reads_well(snapshot: SnapshotAssertion) -> None:
    said = ((each.code, *dict.fromkeys((each.long(), each.short()))) for each in EVERY)
    assert "".join("\n    ".join(lines) + "\n" for lines in said) == snapshot


def test_every_note_is_here() -> None:
    assert {*map(type, EVERY)} == {each for each in Note.classes.values() if each.__module__ == notes.__name__}
