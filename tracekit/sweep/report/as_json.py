"""A sweep as JSON, `tracekit.sweep/1`, and the schemas of what is written of one. From the first release on changes are
additive only."""

from tracekit.model.statement import builtins_of
from tracekit.report.contract import json_text
from tracekit.report.schemas import BESIDE, Written
from tracekit.report.words.notes import note_sentences
from tracekit.sweep.cells import CellResult
from tracekit.sweep.figures import Sweep
from tracekit.sweep.report.words import published_differences
from tracekit.sweep.statements.notes import in_words

#: What stands in a sweep's JSON besides the fields of its nouns.
OF_SWEEPS: dict[str, dict[str, tuple[object, str]]] = {
    "CellFigures": {"warnings": (tuple[str, ...], "What the notes say.")},
    "Sweep": {
        "warnings": (tuple[str, ...], "What the notes say."),
        "differs": (tuple[str, ...], "What the differences are, in words."),
    },
    "Work": {
        "differs": (tuple[str, ...], "What is not the same on all machines of it (`driver: 580.1, 590.2`)."),
        "apart": (tuple[str, ...], "What tells its machine from those of other processes of the same cells."),
    },
    "Conditions": {"held_back": (tuple[str, ...], "What the limits say.")},
}
SWEEP, CELL = Written(Sweep, BESIDE | OF_SWEEPS), Written(CellResult, None)


def sweep_json(sweep: Sweep) -> str:
    """The sweep as it is; what is no number was not measured, and is null. `warnings` and `held_back` are what notes
    say."""
    told = builtins_of(sweep)
    told["warnings"] = note_sentences(sweep.notes)
    told["differs"] = published_differences(sweep)
    for work, fields in zip(sweep.works, told["works"], strict=True):
        fields |= {"differs": in_words(work.differs), "apart": in_words(work.apart)}
        for cell, of_cell in zip(work.cells, fields["cells"], strict=True):
            of_cell["warnings"] = note_sentences(cell.notes)
            of_cell["conditions"]["held_back"] = note_sentences(cell.conditions.limits)
            for process, of_process in zip(cell.processes, of_cell["processes"], strict=True):
                of_process["conditions"]["held_back"] = note_sentences(process.conditions.limits)
    return json_text(told)
