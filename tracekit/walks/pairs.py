"""What a user names as A and B: two sides, or both forms of one run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.model.note import Note
from tracekit.tracefile.source import raise_if_absent
from tracekit.walks.identity import Named, identity_of_report, name_side
from tracekit.walks.sides import borrow_operators, is_run_folder, load_side, refuse_sweep

if TYPE_CHECKING:
    from tracekit.model.comparison import Comparison, Side
    from tracekit.model.run import FormName, Run
    from tracekit.walks.reading import Reading


@dataclass(frozen=True, slots=True)
class Pair:
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
    if b is None and not is_run_folder(a):
        raise_if_absent(a)
        refuse_sweep(a)
        if Path(a).is_dir():
            # It holds traces, and nothing that says that they are one run's.
            missing = f"it has no {store.MANIFEST}"
            raise TracekitError(f"{a} is no run folder, {missing}: name two of its traces, or a run folder")
        raise TracekitError(f"{a} is one trace: name a second one to compare it with")
    b = b or a
    if is_run_folder(a) and is_run_folder(b) and Path(a).resolve() == Path(b).resolve():
        one, other = name_side(a, forms[0] or "eager"), name_side(b, forms[1] or "compiled")
        return Pair(one, other, one.run)
    one, other = (name_side(place, form) for place, form in zip((a, b), forms, strict=True))
    labels = [_label(side) for side in (one, other)]
    if labels[0] == labels[1]:
        labels = [f"{Path(place).resolve().parent.name}-{label}" for place, label in zip((a, b), labels, strict=True)]
    return Pair(replace(one, label=labels[0]), replace(other, label=labels[1]), None)


def _label(side: Named) -> str:
    if side.run is None:
        return side.label
    folder = Path(side.place).resolve().name
    return folder if folder.endswith(f"-{side.form}") else f"{folder} {side.form}"


def load_sides(
    a: str, b: str | None, forms: tuple[FormName | None, FormName | None], reading: Reading
) -> tuple[Side, Side, Run | None]:
    """Both sides, told apart by their labels; and the run, when both are of one."""
    pair = name_sides(a, b, forms)
    return (*load_pair(pair, reading), pair.run)


def load_pair(pair: Pair, reading: Reading) -> tuple[Side, Side]:
    one, other = (load_side(each.place, form=each.form, reading=reading) for each in (pair.one, pair.other))
    return replace(one, label=pair.one.label), replace(other, label=pair.other.label)


def with_operators_of(place: str, one: Side, other: Side, reading: Reading) -> tuple[Side, Side]:
    """Both sides, with the operators of the trace at `place` where they lack their own. Raises TracekitError where
    it has none to lend, or is of other work."""
    from tracekit.comparison.judging.fairness import refuse_other_sizes
    from tracekit.comparison.matching import lacks_operators

    side = load_side(place, reading=reading)
    lender = side.sequence
    if lender is None or lender.operators == "none":
        raise TracekitError(f"{place} holds no operators to lend: record it with ProfilerActivity.CPU and shapes")
    borrowed = borrow_operators(one, lender), borrow_operators(other, lender)
    for side in borrowed:
        if side.sequence and lacks_operators(side.sequence):
            raise TracekitError(
                f"{place} lends operators to few of {side.label}'s kernels: it is of another model, size or compilation"
            )
    for borrower, beside in ((one, other), (other, one)):
        if borrower.sequence and lacks_operators(borrower.sequence):
            refuse_other_sizes(place, side, borrower, beside)
    return borrowed


def with_interrupts(comparison: Comparison, runs: int) -> Comparison:
    """The report is read without the terminal: it says too that a run is not whole."""
    if not runs:
        return comparison
    return replace(comparison, notes=(Note("interrupted", facts={"runs": runs}), *comparison.notes))
