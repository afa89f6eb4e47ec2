"""A sweep as JSON, `tracekit.sweep/1`. From the first release on changes are additive only."""

import msgspec

from tracekit.report.contract import json_text
from tracekit.sweep.figures import Sweep
from tracekit.sweep.report.notes import machine_difference, note_sentences
from tracekit.sweep.report.words import published_differences


def sweep_json(sweep: Sweep) -> str:
    """The sweep as it is; what is no number was not measured, and is null. `warnings` and `held_back` are what notes
    say."""
    told = msgspec.to_builtins(sweep)
    told["warnings"] = note_sentences(sweep.notes)
    told["differs"] = published_differences(sweep)
    for note in told["notes"]:
        if note["code"] in ("machines_of_a_work_differ", "processes_not_pooled"):
            note["facts"]["differences"] = [machine_difference(**each) for each in note["facts"]["differences"]]
    for work, fields in zip(sweep.works, told["works"], strict=True):
        for name, statements in (("differs", work.differs), ("apart", work.apart)):
            fields[name] = [machine_difference(each.code, each.facts) for each in statements]
        for cell, of_cell in zip(work.cells, fields["cells"], strict=True):
            of_cell["warnings"] = note_sentences(cell.notes)
            of_cell["conditions"]["held_back"] = note_sentences(cell.conditions.limits)
            for process, of_process in zip(cell.processes, of_cell["processes"], strict=True):
                of_process["conditions"]["held_back"] = note_sentences(process.conditions.limits)
    return json_text(told)
