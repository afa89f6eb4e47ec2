"""What notes on a sweep, its folder and its cells say."""

from collections.abc import Iterable, Mapping
from typing import Any

from tracekit.model.note import Note
from tracekit.numbers import counted, percent
from tracekit.report.words.common import cached_words
from tracekit.report.words.notes import note_sentence
from tracekit.report.words.saying import Sentence, say


def graphs_from_cache(*, hits: int, graphs: int, cache_was_empty: bool | None) -> str:
    told = (
        f"{hits} of {counted(graphs, 'graph')} came from a compile cache"
        if hits <= graphs
        else cached_words(hits, graphs)
    )
    if cache_was_empty is not False and hits < graphs:
        # A graph may be like an earlier one of the same process.
        return f"{told} (of this process, or a remote cache): a cold compile takes longer."
    return f"{told}: a cold compile takes longer."


#: What machines differ in, where that is not called by its code.
MACHINE = {"cpu": "CPU", "python": "Python"}


def machine_difference(code: str, facts: Mapping[str, Any]) -> str:
    """`driver: 580.1, 590.2`."""
    return f"{MACHINE.get(code, code)}: {', '.join(value or 'none' for value in facts['values'])}"


SENTENCES: dict[str, Sentence] = {
    "cell_unreadable": "{path} cannot be read ({reason}): it counts as missing and will be run again.",
    "cells_outdated": (
        "{cells:counted cell} of {of_cells} predate --again ({since:.16} UTC); --resume measures {cells:it|them} again."
    ),
    "cells_of_another_version": (
        "{cells:counted cell} of {workload} {cells:is|are} of another version ({files:list} changed); the sweep's"
        " command runs {cells:it|them} again."
    ),
    "several_seeds": "Cells have several seeds ({seeds:list}): weights and inputs differ.",
    "several_machines": "Cells are of several machines ({machines:list}): one row each.",
    "several_torches": "Cells are of several torch versions ({versions:list}): one row each.",
    "several_timing_rules": (
        "Cells were timed by different rules (--iterations, --target, --time-budget); the table has their call counts."
    ),
    "several_tracekits": "Cells are of several tracekit versions ({versions:list}).",
    "same_cell_in_files": "{files} files hold cell {key}: the one started last counts.",
    "machines_of_a_work_differ": lambda differences, works, of_works: (
        f"Machines differ within {works} of {counted(of_works, 'workload')}"
        f" ({'; '.join(machine_difference(**each) for each in differences)}): compare speed-ups, not times."
    ),
    "processes_not_pooled": lambda cells, of_cells, differences: (
        f"Processes of {cells} of {counted(of_cells, 'cell')} ran on machines that differ"
        f" ({'; '.join(machine_difference(**each) for each in differences)}): not pooled, one row each."
    ),
    "processes_share_hosts": (
        "In {cells} of {of_cells:counted cell} some processes share a host: the spread between hosts counts for less."
    ),
    "process_without_times": "Process {process} has no times ({message}): it counts nowhere.",
    "cells_side_by_side": (
        "{cells} of {of_cells:counted timed cell} ran concurrently with another of this sweep. On a shared host"
        " host-bound calls can be slower and speed-ups larger. The conditions table has the host load."
    ),
    "cells_throttled": (
        "The GPU was throttled in {cells} of {of_cells:counted cell}; the conditions table has the reasons."
    ),
    "graphs_from_cache": graphs_from_cache,
    "cache_not_empty": "Inductor's cache was not empty: a cold compile may take longer.",
    "eager_process_spread": lambda work, spread: (
        f"Eager process spread up to {percent(spread)} ({work}): --repeat-process 4 measures each cell in four."
    ),
}
#: Those that are shorter below the headline.
SHORT: dict[str, Sentence] = {
    "eager_process_spread": lambda work, spread: f"eager moved by up to {percent(spread)} between processes ({work})",
    "several_timing_rules": "cells were timed by different rules (--iterations, --target, --time-budget)",
    "machines_of_a_work_differ": "{works} of {of_works:counted workload} ran on different machines",
    "processes_share_hosts": "some processes of {cells} of {of_cells:counted cell} share a host",
    "processes_not_pooled": "processes of {cells} of {of_cells:counted cell} ran on unlike machines: not pooled",
    "cells_side_by_side": "{cells} of {of_cells:counted cell} ran concurrently: eager may be too slow",
    "cells_throttled": "the GPU was throttled in {cells} of {of_cells:counted cell}",
}


def short_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """A line of the terminal each."""
    return tuple(
        say(SHORT[note.code], note.facts, note.subject) if note.code in SHORT else note_sentence(note) for note in notes
    )
