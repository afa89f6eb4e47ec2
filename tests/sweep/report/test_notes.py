"""What each note on a sweep says: read the snapshot when it changes."""

import re
from pathlib import Path

from tracekit import sweep
from tracekit.model.note import NoteStruct
from tracekit.report.words.notes import note_sentence
from tracekit.sweep.report.notes import SENTENCES, SHORT


def note(code: str, **facts: object) -> NoteStruct:
    return NoteStruct(code, facts=facts)


DRIVERS = {"code": "driver", "facts": {"values": ["580.1", "590.1"]}}
EVERY = (
    note("cell_unreadable", path="sweeps/vit/cells/one.json", reason="it ends early"),
    note("cells_outdated", cells=1, of_cells=4, since="2026-11-21T19:00:00+00:00"),
    note("cells_of_another_version", cells=1, workload="vit", files=["vit.py"]),
    note("cells_of_another_version", cells=2, workload="vit", files=["vit.py", "inputs.py"]),
    note("several_seeds", seeds=[0, 1]),
    note("several_machines", machines=["NVIDIA H200", "NVIDIA A100"]),
    note("several_torches", versions=["2.11.0", "2.12.0"]),
    note("several_timing_rules"),
    note("several_tracekits", versions=["0.1.0", "0.2.0"]),
    note("same_cell_in_files", key="vit-1", files=2),
    note("machines_of_a_work_differ", differences=[DRIVERS], works=1, of_works=2),
    note("processes_not_pooled", cells=1, of_cells=2, differences=[DRIVERS]),
    note("processes_share_hosts", cells=2, of_cells=3),
    note("process_without_times", process=2, outcome="killed", message="the Ray worker that worked on it died"),
    note("cells_side_by_side", cells=2, of_cells=3),
    note("cells_throttled", cells=1, of_cells=2),
    note("graphs_from_cache", hits=1, graphs=3, cache_was_empty=True),
    note("graphs_from_cache", hits=3, graphs=3, cache_was_empty=True),
    note("graphs_from_cache", hits=1, graphs=3, cache_was_empty=False),
    note("cache_not_empty"),
    note("eager_process_spread", work="vit, batch 1", spread=0.272),
)


def test_every_note_reads_well(snapshot: object) -> None:
    assert "".join(f"{each.code}\n    {note_sentence(each)}\n" for each in EVERY) == snapshot


def test_each_code_that_is_given_has_a_sentence_and_each_sentence_an_example() -> None:
    paths = Path(sweep.__file__).parent.rglob("*.py")
    source = "".join(path.read_text(encoding="utf-8") for path in paths if path.name != "notes.py")
    assert {*re.findall(r'Note\(\s*"(\w+)"', source)} <= SENTENCES.keys()
    assert [code for code in SENTENCES if f'"{code}"' not in source] == []
    assert SENTENCES.keys() == {each.code for each in EVERY} >= SHORT.keys()
