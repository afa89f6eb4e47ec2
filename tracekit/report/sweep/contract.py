"""The JSON contract of a sweep: `tracekit.sweep/1`. Changes are additive only."""

from __future__ import annotations

import msgspec

from tracekit.model.sweep_figures import Sweep
from tracekit.report.sweep.words import published_differences
from tracekit.report.words.notes import note_sentences


def sweep_json(sweep: Sweep) -> str:
    """The sweep as it is; what is no number was not measured, and is null. `warnings` and `held_back` are what notes
    say."""
    told = msgspec.to_builtins(sweep)
    told["warnings"] = note_sentences(sweep.notes)
    told["differs"] = published_differences(sweep)
    for work, fields in zip(sweep.works, told["works"], strict=True):
        for cell, of_cell in zip(work.cells, fields["cells"], strict=True):
            of_cell["warnings"] = note_sentences(cell.notes)
            of_cell["conditions"]["held_back"] = note_sentences(cell.conditions.limits)
    return msgspec.json.format(msgspec.json.encode(told), indent=1).decode() + "\n"
