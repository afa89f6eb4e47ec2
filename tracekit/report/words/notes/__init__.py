"""What a note says: its code's sentence, of its subject and its facts. Those on a sweep, its folder and its cells stand
here."""

from collections.abc import Iterable, Mapping
from typing import Any

from tracekit.model.note import Note
from tracekit.numbers import counted, percent
from tracekit.report.words.notes import comparisons
from tracekit.report.words.saying import Sentence, say

#: Stands after a speed-up that is no farther from 1 than processes of its work's eager form are from each other.
SLIGHT = "~"
HOW_TO_MEASURE_SPREAD = "tracekit profile with --repeat-process 4 measures that."


def graphs_from_cache(*, hits: int, graphs: int, cache_was_empty: bool | None) -> str:
    told = f"{hits} of {counted(graphs, 'graph')} came from a cache of compiled code"
    if cache_was_empty is not False and hits < graphs:
        # A graph may be like an earlier one of the same process.
        return f"{told}: what this process compiled before, or a remote cache, where a first time takes longer."
    return f"{told}: compiling took less than it does the first time."


def eager_process_spread(*, work: str, spread: float, slight: int, compared: int) -> str:
    """`slight` of the `compared` changes are no larger than the spread of their own work."""
    differs = f"Eager differs by up to {percent(spread)} from process to process ({work})"
    if not slight:
        all_are, their = ("the one change is", "its") if compared == 1 else (f"all {compared:,} changes are", "their")
        told = f"{all_are} larger than that of {their} own work, yet each figure may move as much."
    else:
        are, their = ("is", "its") if slight == 1 else ("are", "their")
        told = (
            f"{slight:,} of {counted(compared, 'change')} {are} no larger than that of {their} own work, marked"
            f" {SLIGHT}: another process may find none, or the opposite."
        )
    return f"{differs}; {told} {HOW_TO_MEASURE_SPREAD}"


#: What machines differ in, where that is not called by its code.
MACHINE = {"cpu": "CPU", "python": "Python", "float32_matmul_precision": "precision of float32 products"}


def machine_difference(code: str, facts: Mapping[str, Any]) -> str:
    """`driver: 580.1, 590.2`."""
    return f"{MACHINE.get(code, code)}: {', '.join(value or 'none' for value in facts['values'])}"


SENTENCES: dict[str, Sentence] = comparisons.SENTENCES | {
    "cell_unreadable": "{path} cannot be read ({reason}): its cell counts as missing, and is run again.",
    "cells_outdated": (
        "{cells:counted cell} of {of_cells} were measured before --again began ({since:.16} UTC) and are not measured"
        " anew yet: --resume goes on with it."
    ),
    "cells_of_another_version": (
        "{cells:counted cell} of {workload} {cells:is|are} of another version: {files:list} changed since; the sweep's"
        " command runs {cells:it|them} anew."
    ),
    "cells_of_unknown_version": (
        "Of {cells:counted cell} of {workload} nobody noted which version of the model it was."
    ),
    "several_seeds": "Cells were made with several seeds ({seeds:list}): their weights and inputs differ.",
    "several_machines": "Cells were measured on several machines ({machines:list}): each is a row of its own.",
    "several_torches": (
        "Cells were measured with several versions of torch ({versions:list}): each is a row of its own."
    ),
    "several_timing_rules": (
        "Cells were timed by different rules (--iterations, --target, --time-budget): how many calls each made is in"
        " the table."
    ),
    "several_tracekits": "Cells were measured by several versions of tracekit ({versions:list}).",
    "same_cell_in_files": (
        "{files} files tell of cell {key}: the one that was begun last is shown, and no other counts."
    ),
    "machines_of_a_work_differ": lambda differences, works, of_works: (
        f"Cells of the same work were measured on machines that differ"
        f" ({'; '.join(machine_difference(**each) for each in differences)}), in {works} of"
        f" {counted(of_works, 'work')}: their eager times are taken together all the same, and times of different"
        " cells are not of one machine. Speed-ups are."
    ),
    "cells_side_by_side": (
        "{cells} of {of_cells:counted cell} with times ran while another cell of this folder did, on the same host"
        " or on another. Processes of one host share its cores: calls that wait for the host, above all the eager ones"
        " of small models, can be longer, and speed-ups larger, than on a quiet one. Its load is in the table of"
        " conditions."
    ),
    "cells_throttled": (
        "The GPU was held back while {cells} of {of_cells:counted cell} were timed: by what, and for how much of"
        " the time, is in the table of conditions."
    ),
    "graphs_from_cache": graphs_from_cache,
    "cache_not_empty": "Inductor's cache was not empty: compiling may have taken less than it does the first time.",
    "eager_process_spread": eager_process_spread,
}


def note_sentence(note: Note) -> str:
    """The note in English."""
    return say(SENTENCES[note.code], note.facts, note.subject)


def note_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """All notes, in their order."""
    return tuple(map(note_sentence, notes))


def grave_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """Those that stand beside the headline."""
    return note_sentences(note for note in notes if note.grave)


def other_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """Those that do not."""
    return note_sentences(note for note in notes if not note.grave)
