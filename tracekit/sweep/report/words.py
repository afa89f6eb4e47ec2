"""The figures of a sweep as people read them, and its sentences."""

import math
from collections import Counter
from typing import get_args

from tracekit.model.note import Note
from tracekit.numbers import MISSING, calls_span, count, counted, duration, percent, size, times, times_within
from tracekit.report.words.common import ratio_span
from tracekit.sweep.cells import CellOutcome
from tracekit.sweep.figures import Best, Candidate, CellFigures, Goal, Sweep, Work
from tracekit.sweep.report.labels import Labels, label
from tracekit.sweep.statements.notes import EagerProcessSpread

#: What became of a cell that has no times.
OUTCOMES: dict[CellOutcome, str] = {outcome: outcome.replace("_", " ") for outcome in get_args(CellOutcome)}
#: The table of verdicts, with their noise floors.
ALL_CELLS = "All cells"
#: A cell that was asked for and is not there yet.
TO_RUN = "to run"
#: Of more works than this, tables with several rows for each are folded, or shortened.
MOST_WORKS = 6
#: So many cells that are left to run are named.
NAMED = 3
#: A larger figure needs no third decimal.
LARGE_MS = 1000.0

#: Stands after a speed-up that may be chance.
CHANCE_MARK = "~"
CHANCE_NOTE = f"{CHANCE_MARK}: not beyond chance (5 %, Holm over all modes): another process may find no difference."
THESE_PROCESSES_NOTE = (
    "Nobody measured how processes of a CPU, or of several ranks, differ: verdicts are of these processes."
)
#: Stands for the speed-up where noise alone may have made it.
UNSURE = "n.s."
UNSURE_NOTE = f"{UNSURE}: no difference established beyond what a verdict needs ({ALL_CELLS})."
MARGIN_NOTE = "±: half of the 95 % CI over processes."
#: A smaller chance is told as this.
LEAST_CHANCE = 0.001
#: Eager processes of one work that are farther apart than this are worth a word.
MUCH_APART = 0.05


def milliseconds(us: float | None, ci95: tuple[float, float] | None = None) -> str:
    """`9.325 (9.310 to 9.341)`, in milliseconds."""
    if us is None:
        return MISSING
    every = (each / 1e3 for each in (us, *(ci95 or ())))
    text, *ends = (f"{ms:.3f}" if abs(ms) < LARGE_MS else f"{ms:,.1f}" for ms in every)
    return f"{text} ({' to '.join(ends)})" if ends else text


def ratio(value: float | None, ci95: tuple[float, float] | None, *, chance: bool = False) -> str:
    """`2.41x (2.402 to 2.418)`; `1.039x~ (1.035 to 1.045)` of a change that may be chance."""
    if value is None:
        return MISSING
    told = f"{times(value)}{CHANCE_MARK if chance else ''}"
    return f"{told} ({ci95[0]:.3f} to {ci95[1]:.3f})" if ci95 else told


def may_be_chance(cell: CellFigures) -> bool:
    """Whether what was timed differs, but no more than chance among the cells of its work."""
    return cell.result == "inconclusive" and cell.verdict is not None and cell.verdict.result != "inconclusive"


def speedup(cell: CellFigures) -> str:
    """The cell's speed-up with its interval, or what became of it."""
    if cell.failure is not None:
        return OUTCOMES[cell.outcome]
    if cell.verdict is None:
        return MISSING
    if cell.verdict.result == "inconclusive" and cell.verdict.ci95:
        low, high = cell.verdict.ci95
        return f"{UNSURE} ({low:.3f} to {high:.3f})"
    return ratio(cell.verdict.speedup, cell.verdict.ci95, chance=may_be_chance(cell))


def speedup_alone(cell: CellFigures) -> str:
    """The same without its interval, of a cell that has a verdict."""
    if cell.verdict is None or cell.verdict.speedup is None:
        return MISSING
    if cell.verdict.result == "inconclusive":
        return UNSURE
    return f"{times_within(cell.verdict.speedup, cell.verdict.ci95)}{CHANCE_MARK if may_be_chance(cell) else ''}"


def margin(cell: CellFigures) -> str:
    """`±0.8 %`: half of the interval over the cell's processes; empty for one."""
    verdict = cell.verdict
    if verdict is None or verdict.basis != "processes" or verdict.ci95 is None:
        return ""
    low, high = verdict.ci95
    return f"±{percent(math.sqrt(high / low) - 1)}"


def chance(cell: CellFigures) -> str:
    """`3.2 %`, `< 0.1 %`."""
    if cell.chance is None:
        return MISSING
    return f"< {percent(LEAST_CHANCE)}" if cell.chance < LEAST_CHANCE else percent(cell.chance)


def seconds(value: float | None) -> str:
    """`21.3`, in seconds."""
    return MISSING if value is None else f"{value:,.1f}"


def compiling(cell: CellFigures) -> str:
    """`21.3` seconds of compiling; `3.1, 2 of 3 cached` where a cache of compiled code had a part."""
    told = seconds(cell.compile_seconds)
    return f"{told}, {cell.cache_hits} of {cell.graphs} cached" if cell.cache_hits else told


def both_medians(cell: CellFigures) -> str:
    """`8.002 to 4.001`: eager's and the compiled form's, in milliseconds, of the cell's own processes, so that they go
    with its speed-up."""
    if cell.eager is None or cell.compiled is None:
        return MISSING
    return f"{milliseconds(cell.eager.median_us)} to {milliseconds(cell.compiled.median_us)}"


def even_after(cell: CellFigures) -> str:
    """After how many calls compiling is paid for: a number, or between which two; `never`, or a dash where no saving
    was established."""
    found = cell.break_even
    if found is None or found.never:
        return "never" if found else MISSING
    return MISSING if found.span is None or math.isinf(found.span[0]) else calls_span(*found.span)


def goal_words(goal: Goal, calls: int | None) -> str:
    """What a goal is called."""
    if goal == "cold_start":
        return "Fastest first call" if calls == 1 else f"{count(calls)} calls from a cold start"
    return {"latency": "Lowest latency", "memory": "Least memory"}[goal]


def candidate_words(candidate: Candidate, best: Best, labels: Labels, work: Work) -> str:
    """A way to run the work, with its figure for the goal, and whether that is established."""
    cell, beside = _cell_of(candidate, work), []
    if best.goal == "latency":
        figure = times(1 / candidate.value)
        # Beside a speed-up the median call that came of it, in the same process.
        beside = [f"{milliseconds(cell.compiled.median_us)} ms"] if cell and cell.compiled else []
        beside += ["inconclusive"] if candidate.against_eager == "undecided" else []
        if candidate.key is not None and candidate.key == best.to_confirm:
            figure, beside = _confirmed_words(best, figure, beside)
    else:
        shown = duration if best.goal == "cold_start" else size
        ends = dict.fromkeys(shown(each) for each in (candidate.lowest, candidate.value) if each is not None)
        figure = " to ".join(ends)
    words = f"{candidate_name(candidate, labels, work)}, {figure}"
    return f"{words} ({', '.join(beside)})" if beside else words


def _confirmed_words(best: Best, figure: str, beside: list[str]) -> tuple[str, list[str]]:
    """The figure to tell of the best, and what to say beside it: what was chosen reads too high."""
    found = best.confirmed
    if found is None:
        return figure, [*beside, "not measured again"]
    if found.speedup is None:
        return figure, [*beside, f"measuring it again: {OUTCOMES[found.outcome]}"]
    told = [f"measured again: {milliseconds(found.compiled_us)} ms"]
    if found.next_process95:
        told.append(f"next process {ratio_span(*found.next_process95)}")
    told.append(f"{figure} when chosen")
    if not found.beats_eager:
        told.append("not faster than eager then")
    elif found.beats_next is False:
        told.append("not faster than the next")
    return times(found.speedup), told


def candidate_name(candidate: Candidate, labels: Labels, work: Work) -> str:
    """A way to run the work."""
    cell = _cell_of(candidate, work)
    return labels.way(cell.cell) if cell else "eager"


def _cell_of(candidate: Candidate, work: Work) -> CellFigures | None:
    return next((cell for cell in work.cells if cell.cell.key == candidate.key), None)


def best_words(best: Best, labels: Labels, work: Work) -> str:
    """Which is best, or which are and nothing tells them apart."""
    tied = [best.candidates[at] for at in best.tied]
    words = [candidate_words(each, best, labels, work) for each in tied]
    if best.clear:
        return words[0]
    # So far another compiled form would have to be behind; beside eager it is its verdict. One that is farther behind
    # ties by intervals that meet, or, of starts, by the least that either may take.
    first, *others = tied
    needed = [each.needed for each in others if each.needed is not None]
    far = any(each.needed is not None and each.value > first.value * (1 + each.needed) for each in others)
    why = f" within {percent(max(needed))}{' at the lower ends' if far else ''}" if needed else ""
    if far and best.goal == "latency":
        why = ", intervals meet"
    return f"tie{why}: {'; '.join(words)}"


def headline(sweep: Sweep) -> str:
    """The sweep in a sentence."""
    found = Counter(cell.result for cell in sweep.cells if cell.result)
    if not found:
        return f"{sweep.name}: no compiled config was timed."
    largest = max((each for work in sweep.works if (each := _largest(work))), default=None)
    again = any(best.confirmed and best.confirmed.speedup == largest for work in sweep.works for best in work.best)
    most = f" (up to {times(largest)}{', measured again' if again else ''})" if largest else ""
    # What was not gained belongs beside what was.
    told = "".join(f", {found[what]} {what}" for what in ("slower", "inconclusive") if found[what])
    faster = f"{found['faster']} of {counted(found.total(), 'config')} faster{where(sweep)}"
    return f"{sweep.name}: {faster}{most}{told}."


def _largest(work: Work) -> float | None:
    """The largest speed-up of the work: that of its best as it was measured again, where it was."""
    for best in work.best:
        if best.confirmed and best.confirmed.speedup:
            return best.confirmed.speedup if best.confirmed.beats_eager else None
    return max(
        (cell.verdict.speedup or 0.0 for cell in work.cells if cell.verdict and cell.result == "faster"), default=None
    )


def where(sweep: Sweep) -> str:
    """` in these processes` where nobody knows of others: on a CPU, and of several ranks."""
    judged = [cell.verdict for cell in sweep.cells if cell.verdict and cell.chance is not None]
    return " in these processes" if any(verdict.next_process95 is None for verdict in judged) else ""


def progress_sentence(sweep: Sweep) -> str:
    """How much of the sweep is there, and what is not."""
    failed = [cell.outcome for cell in sweep.cells if cell.failure is not None]
    eager = sum(cell.cell.form == "eager" for cell in sweep.cells)
    progress = [f"{len(sweep.cells)} done ({eager} eager, {len(sweep.cells) - eager} compiled)"]
    numbers = {len(cell.processes) for cell in sweep.cells}
    if (most := max(numbers, default=1)) > 1:
        progress.append(f"{'up to ' if len(numbers) > 1 else ''}{most} processes each")
    if sweep.processes_missing:
        progress.append(f"{counted(sweep.processes_missing, 'process')} of these to run")
    if sweep.missing:
        labels = label(sweep)
        works = {work.key: labels.of(work) for work in sweep.works}
        named = [
            f"{works.get(cell.work) or f'{cell.request.workload}, batch {cell.request.batch_size}'}, {labels.way(cell)}"
            for cell in sweep.left[:NAMED]
        ]
        named += [f"{sweep.missing - NAMED} more"] if sweep.missing > NAMED else []
        progress.append(f"{sweep.missing} to run ({'; '.join(named)})")
    if failed:
        kinds = Counter(OUTCOMES[outcome] for outcome in failed if outcome != "failed")
        words = ", ".join(word if number == len(failed) else f"{number} {word}" for word, number in kinds.items())
        progress.append(f"{len(failed)} of these failed{f' ({words})' if words else ''}")
    return f"Cells: {', '.join(progress)}."


def chance_note(sweep: Sweep) -> str:
    """What the marks mean; empty where none is shown."""
    unsure = any(cell.verdict and cell.verdict.result == "inconclusive" for cell in sweep.cells)
    notes = {
        UNSURE_NOTE: unsure,
        CHANCE_NOTE: any(map(may_be_chance, sweep.cells)),
        THESE_PROCESSES_NOTE: bool(where(sweep)),
    }
    return " ".join(note for note, is_there in notes.items() if is_there)


def spread_notes(sweep: Sweep) -> tuple[Note, ...]:
    """How far eager processes are apart at most, where that is much; empty where not."""
    spreads = [(work.eager.spread, work) for work in sweep.works if work.eager]
    widest, work = max(spreads, key=lambda each: each[0], default=(0.0, None))
    if work is None or widest <= MUCH_APART:
        return ()
    return (EagerProcessSpread(work=label(sweep).of(work), spread=widest),)
