"""What a user names to compare: A and B, two sides or both forms of one run; or three runs and more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracekit import store
from tracekit.comparison.comparing import compare
from tracekit.comparison.judging import alternatives
from tracekit.comparison.judging.alternatives import MOST_RUNS
from tracekit.comparison.judging.fairness import find_other_work, refuse_other_sizes
from tracekit.comparison.judging.gate import of_ranks
from tracekit.comparison.matching.cells import lacks_operators
from tracekit.errors import TracekitError
from tracekit.reading.reports import digest, identity_of_form, identity_of_report
from tracekit.reading.sides import (
    borrow_operators,
    choose_form,
    compare_job,
    file_label,
    interrupted_run,
    is_run_folder,
    load_side,
    refuse_place_of_wing,
    run_without_compiled,
    slowest_rank,
)
from tracekit.shell import quoted
from tracekit.statements.notes.timing import Interrupted
from tracekit.tracefile.places import is_url
from tracekit.tracefile.read import check_is_trace
from tracekit.tracefile.source import raise_if_absent, refuse_ranks

if TYPE_CHECKING:
    from tracekit.model.comparison import Comparison, Side
    from tracekit.model.comparisons import Comparisons
    from tracekit.model.gate import Condition
    from tracekit.model.job import Job
    from tracekit.model.run import FormName, Run
    from tracekit.reading.traces import Reading


class Named(Struct, frozen=True):
    """What a user named as one side, before it is read: a trace, or a form of a run, and what it will be called."""

    place: str
    label: str
    form: FormName | None
    run: Run | None
    identity: str


def name_side(place: str, form: FormName | None) -> Named:
    """Raises TracekitError for a run that has no such form."""
    if not is_run_folder(place):
        # A path is nobody else's business: the report holds a hash of it alone.
        where = place if "://" in place else str(Path(place).resolve())
        return Named(place, file_label(Path(place)), form, None, digest(["trace", where]))
    run = store.load(Path(place))
    chosen = choose_form(run, Path(place), form).name
    return Named(place, chosen, chosen, run, identity_of_form(run, chosen))


class Pair(Struct, frozen=True):
    """What a user named as A and B, before it is read, told apart by their labels; and the run, when both are of
    one."""

    one: Named
    other: Named
    run: Run | None

    @property
    def identity(self) -> str:
        return identity_of_report("comparison", (self.one.identity, self.other.identity))


def name_sides(a: str, b: str | None, forms: tuple[FormName | None, FormName | None]) -> Pair:
    """Raises TracekitError where there are no two sides."""
    alone = f"{a} is one trace: pass a second one to compare it with"
    if b is None and is_url(a):
        raise TracekitError(alone)
    if b is None and not is_run_folder(a):
        raise_if_absent(a)
        refuse_place_of_wing(a)
        if not Path(a).is_dir():
            check_is_trace(Path(a))
            raise TracekitError(alone)
        refuse_ranks(Path(a))
        # It holds traces, and nothing that says that they are one run's.
        missing = f"it has no {store.MANIFEST} of `tracekit profile`"
        raise TracekitError(f"{a} is not a run folder, {missing}: pass two traces, two recordings, or a run folder")
    twice, b = b is not None, b or a
    if is_run_folder(a) and is_run_folder(b) and Path(a).resolve() == Path(b).resolve():
        if twice and not any(forms):
            # A gate of a run on itself would decide about its eager and compiled, and pass.
            raise TracekitError(f"{b} is given twice: pass it once for its eager and compiled, or two runs")
        one, other = name_side(a, forms[0] or "eager"), name_side(b, forms[1] or "compiled")
        return Pair(one, other, one.run)
    one, other = (name_side(place, form) for place, form in zip((a, b), forms, strict=True))
    labels: list[str] = []
    for side in (one, other):
        folder = Path(side.place).resolve().name
        of_run = folder if folder.endswith(f"-{side.form}") else f"{folder} {side.form}"
        labels.append(of_run if side.run else side.label)
    if labels[0] == labels[1]:
        labels = [f"{Path(place).resolve().parent.name}-{label}" for place, label in zip((a, b), labels, strict=True)]
    return Pair(replace(one, label=labels[0]), replace(other, label=labels[1]), None)


def load_sides(
    a: str, b: str | None, forms: tuple[FormName | None, FormName | None], reading: Reading
) -> tuple[Side, Side, Run | None]:
    """Both sides, told apart by their labels; and the run, when both are of one."""
    pair = name_sides(a, b, forms)
    return (*load_pair(pair, reading), pair.run)


def load_job(pair: Pair, reading: Reading) -> Job | None:
    """What changed over all ranks, where both sides are forms of runs of as many."""
    a, b = pair.one, pair.other
    if a.run is None or b.run is None or a.form is None or b.form is None or a.identity == b.identity:
        return None
    if not a.run.ranks or len(a.run.ranks) != len(b.run.ranks):
        return None
    return compare_job((Path(a.place), a.run, a.form), (Path(b.place), b.run, b.form), reading)


def refuse_gate_of_ranks(pair: Pair, conditions: tuple[Condition, ...]) -> None:
    """Raises TracekitError where a condition is for runs over ranks alone, and the sides are none of as many."""
    condition, sides = of_ranks(conditions), (pair.one, pair.other)
    if condition is None:
        return
    asked, sizes = f'--gate "{condition.text}"', [len(each.run.ranks) if each.run else 0 for each in sides]
    for side, size in zip(sides, sizes, strict=True):
        if size < 2:
            runs = "pass runs of `tracekit profile --nproc N`, or leave it out"
            raise TracekitError(f"{asked} is for runs over several ranks, and {side.place} is of one: {runs}")
    if sizes[0] != sizes[1]:
        raise TracekitError(f"{asked} needs as many ranks on both sides: A has {sizes[0]}, B {sizes[1]}")


def load_pair(pair: Pair, reading: Reading, job: Job | None = None) -> tuple[Side, Side]:
    """Both sides; of a `job` its slowest rank's."""
    one, other = (
        load_side(each.place, form=each.form, reading=reading, rank=slowest_rank(each.run, job) if each.run else None)
        for each in (pair.one, pair.other)
    )
    return replace(one, label=pair.one.label), replace(other, label=pair.other.label)


def with_operators_of(place: str, one: Side, other: Side, reading: Reading) -> tuple[Side, Side]:
    """Both sides, with the operators of the trace at `place` where they lack their own. Raises TracekitError where
    it has none to lend, or is of other work."""
    lender = load_side(place, reading=reading)
    if lender.sequence is None or lender.sequence.operators == "none":
        raise TracekitError(
            f"{place} has no operators for --ops: record it with ProfilerActivity.CPU and record_shapes"
        )
    borrowed = borrow_operators(one, lender.sequence), borrow_operators(other, lender.sequence)
    for side in borrowed:
        if side.sequence and lacks_operators(side.sequence):
            raise TracekitError(
                f"{place} has operators for few kernels of {side.label}: pass a trace of the same model, size and scope"
            )
    for borrower, beside in ((one, other), (other, one)):
        if borrower.sequence and lacks_operators(borrower.sequence):
            refuse_other_sizes(place, lender, borrower, beside)
    return borrowed


def with_interrupts(comparison: Comparison, runs: int) -> Comparison:
    """The report is read without the terminal: it says too that a run is not whole."""
    if not runs:
        return comparison
    return replace(comparison, notes=(Interrupted(runs), *comparison.notes))


def load_comparisons(places: tuple[str, ...], reading: Reading) -> Comparisons:
    """Each run's eager form with its compiled one, side by side. Raises what `refuse_unpaired_runs` does, and
    TracekitError for runs that are not of the same work."""
    refuse_unpaired_runs(places)
    runs = [store.load(Path(place)) for place in places]
    pairs = [[load_side(place, form=form, reading=reading) for form in ("eager", "compiled")] for place in places]
    eager = [pair[0] for pair in pairs]
    refuse_side_by_side(eager, places)
    names = alternatives.name_ways([run.settings for run in runs], short_names(places))
    differences = alternatives.find_differences(eager, names)
    comparisons = []
    for (one, other), run, name in zip(pairs, runs, names, strict=True):
        sides = alternatives.labelled(one, other, name, alike=not differences)
        comparisons.append(alternatives.with_verified(compare(*sides, run.order), run.verified))
    return alternatives.set_beside(comparisons, places, differences)


def refuse_unpaired_runs(places: tuple[str, ...]) -> None:
    """Raises TracekitError for what holds no two forms, and for a run that is named twice or was interrupted."""
    if len(places) > MOST_RUNS:
        raise TracekitError(f"{len(places)} runs are too many to compare: pass {MOST_RUNS} at most")
    folders = [Path(place).resolve() for place in places]
    for place, folder in zip(places, folders, strict=True):
        if folders.count(folder) > 1:
            raise TracekitError(f"{place} is given twice: pass each run once")
        if interrupted_run(place):
            raise TracekitError(f"{place} was interrupted: compare it alone, or record it again")
        if run_without_compiled(place):
            says = f"`tracekit compare {quoted(place)}` shows why"
            raise TracekitError(f"{place} has no compiled variant: torch.compile compiled nothing; {says}")
        if not is_run_folder(place) or {form.name for form in store.load(folder).forms} != {"eager", "compiled"}:
            raise TracekitError(
                f"{place} is not a run with eager and compiled: pass run folders of "
                "`tracekit profile ... --compiled`, or compare two traces"
            )


def short_names(places: Sequence[str]) -> tuple[str, ...]:
    """Each folder by its own name, and by as many of the folders that it lies in as it takes to tell it from the
    others: `before/vit` and `after/vit`."""
    parts = [Path(place).resolve().parts for place in places]
    for kept in range(1, max(map(len, parts), default=0) + 1):
        names = tuple(str(PurePath(*each[-kept:])) for each in parts)
        if len(set(names)) == len(names):
            return names
    return tuple(places)


def refuse_to_gate(a: Side, b: Side) -> None:
    """Raises TracekitError where a gate would compare other work, or another GPU."""
    if different := _differences(a, b):
        raise TracekitError(f"--gate needs comparable sides: {' '.join(different)}")


def refuse_side_by_side(sides: Sequence[Side], paths: Sequence[str]) -> None:
    """Raises TracekitError where a run does other work than the first, or ran on another GPU: their figures differ
    whatever the code."""
    for side, path in zip(sides[1:], paths[1:], strict=True):
        if different := _differences(sides[0], side):
            raise TracekitError(
                f"{paths[0]} and {path} cannot be compared side by side: {different[0]} Compare two of them, or "
                "record runs that differ only in --mode or --scope"
            )


def _differences(a: Side, b: Side) -> tuple[str, ...]:
    return tuple(note.long() for note in find_other_work(a, b))
