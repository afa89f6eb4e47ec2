"""Several ways to compile: which is fastest, what each is worth, and their figures, one column a form."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.model.note import distinct
from tracekit.numbers import MISSING, count, duration, times
from tracekit.report.document import Table, columns
from tracekit.report.sections.figures import figures_table
from tracekit.report.sections.timing import KINDS, pays_after
from tracekit.report.sides import with_letters
from tracekit.report.words.common import is_open, result_word, subject
from tracekit.shell import variable_words

#: Of a form beside the eager one of its process.
AGAINST_EAGER: dict[str, Callable[[Comparison], str]] = {
    "Eager in the same process": lambda each: duration(each.a.wall_us),
    "Speed-up": lambda each: (
        MISSING
        if each.verdict.speedup is None
        else result_word(each)
        if each.verdict.result == "inconclusive"
        else times(each.verdict.speedup)
    ),
    "95 % CI": lambda each: f"{each.verdict.ci95[0]:.3f}-{each.verdict.ci95[1]:.3f}" if each.verdict.ci95 else MISSING,
    "Verdict": lambda each: result_word(each).lower(),
}


def headline(compared: Comparisons) -> str:
    """Which is fastest over its own eager form, and which were not judged, for what has nothing to do with speed."""
    if compared.leader is None:
        slower = all(each.verdict.result == "slower" for each in compared.comparisons)
        unknown = [each.b.label for each in compared.comparisons if is_open(each.verdict)]
        fastest = "All are slower than eager." if slower else "None is faster than eager."
        if unknown:
            fastest = f"Not enough to tell whether {' or '.join(unknown)} is faster than eager."
    else:
        leader = compared.comparisons[compared.leader]
        name, speedup = leader.b.label, times(leader.verdict.speedup)
        others = [compared.comparisons[at].b.label for at in compared.fastest if at != compared.leader]
        fastest = f"{name} is fastest: {speedup} faster than eager."
        if others:
            fastest = f"{name} is {speedup} faster than eager; nothing tells {' and '.join(others)} from it."
    for why, late in (("compilation inside timed calls", True), ("too few timed calls", False)):
        unjudged = (compared.comparisons[at] for at in compared.not_judged)
        names = [each.b.label for each in unjudged if bool(each.compiled_while_timed) == late]
        fastest += f" No verdict, {why}: {', '.join(names)}." if names else ""
    return fastest


def shortest_calls(compared: Comparisons) -> Iterator[str]:
    """That another form has the shortest calls and the smaller speed-up, where its eager form was faster too."""
    timed = {at: each.b.wall_us for at, each in enumerate(compared.comparisons) if each.b.wall_us is not None}
    if not timed or compared.leader is None:
        return
    at = min(timed, key=lambda at: timed[at])
    shortest, leader = compared.comparisons[at], compared.comparisons[compared.leader]
    speedups, walls = (shortest.verdict.speedup, leader.verdict.speedup), (shortest.a.wall_us, leader.a.wall_us)
    if at in (compared.leader, *compared.not_judged) or None in speedups or None in walls:
        return
    if (speedups[0] or 0.0) < (speedups[1] or 0.0) and (walls[0] or 0.0) < (walls[1] or 0.0):
        ends = f"{shortest.b.label} has the shortest calls ({duration(timed[at])})"
        yield f"{ends} but a smaller speed-up: eager was faster in the same process."


def notes_of_runs(compared: Comparisons, *, grave: bool = False) -> tuple[str, ...]:
    """What must be known of single runs, or that without which a verdict misleads; what is said of several stands once,
    with their names."""
    found = [(each.b.label, note) for each in compared.comparisons for note in each.notes if note.grave == grave]
    return tuple(
        f"{', '.join(name for name, each in found if each == note)}: {note.long()}"
        for note in distinct(note for _, note in found)
    )


def subjects(compared: Comparisons) -> str:
    """What was run, on what: the same for all. Variables that steer torch only where they are."""
    side = compared.comparisons[0].a
    steered = {variable_words(each.a.settings.variables) for each in compared.comparisons if each.a.settings}
    if side.settings and len(steered) > 1:
        side = replace(side, settings=replace(side.settings, variables={}))
    return subject(side)


def comparisons_figures(compared: Comparisons) -> Table:
    """With what compiling costs and brings, a column for each form."""
    by_side = [compared.of(side) for side in compared.sides]
    kinds = dict.fromkeys(start.kind for each in compared.comparisons for start in each.break_even)
    # Empty of an eager form.
    starts = [{start.kind: pays_after(start) for start in each.break_even} if each else None for each in by_side]
    paid_after = {kind: ["" if each is None else each.get(kind, MISSING) for each in starts] for kind in kinds}
    return figures_table(
        with_letters(*compared.sides),
        [(label, *(figure(each) if each else "" for each in by_side)) for label, figure in AGAINST_EAGER.items()],
        [(f"Break-even ({KINDS[kind]})", *paid) for kind, paid in paid_after.items()],
        "Eager is of the first run." if compared.alike else "",
    )


def run_table(compared: Comparisons) -> Table:
    """Which run each form comes from."""
    rows = tuple(
        (each.b.label, path, count(len(each.b.form.wall_us) if each.b.form else None))
        for each, path in zip(compared.comparisons, compared.paths, strict=True)
    )
    return Table("Runs", columns("Variant", "Run", figures=("Timed calls",)), rows)
