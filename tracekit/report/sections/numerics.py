"""What the forms return beside what they should return."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from tracekit.model.comparison import Comparison, Side
from tracekit.model.numerics import FormNumerics, OutputDifference, TensorDifference
from tracekit.names import clipped, printable
from tracekit.numbers import MISSING, count, percent
from tracekit.report.document import Column, Table

#: Tensors of one output that are listed; the first ones are what a model's user takes.
MOST_TENSORS = 6

COLUMNS = (
    Column("Output of", numeric=False),
    Column("Beside", numeric=False),
    Column("Largest error"),
    Column("Mean error"),
    Column("Relative"),
    Column("1 \N{MINUS SIGN} cosine"),
    Column("Equal"),
)

NOTE = (
    "Errors are absolute, over all numbers that are finite on both sides. Relative: the length (L2) of the difference "
    "over that of the output beside which it stands."
)

RESULTS = {
    "equal": "Outputs are equal",
    "as_accurate": "Outputs are as accurate as eager's",
    "less_accurate": "Outputs differ by more than rounding",
    "undecided": "Whether outputs are as accurate as eager's cannot be told",
}


def accuracy_sentence(comparison: Comparison) -> str | None:
    """What was found of B's outputs, in a line; None where they were not compared."""
    accuracy = comparison.accuracy
    return f"{RESULTS[accuracy.result]}. {accuracy.because}" if accuracy else None


def numerics_table(comparison: Comparison) -> Table | None:
    """The outputs of both sides beside each other, themselves and a higher precision; None where none were compared."""
    rows = tuple(row for side in (comparison.a, comparison.b) for row in _rows(side))
    if not rows:
        return None
    notes = dict.fromkeys(note for side in (comparison.a, comparison.b) for note in _notes(side))
    return Table("Outputs beside each other", COLUMNS, rows, " ".join((NOTE, *notes)))


def picture_sources(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """The images that the forms made: the words under each, and the picture itself as an address that holds it."""
    return tuple(
        (picture.caption, f"data:image/png;base64,{base64.b64encode(picture.png).decode()}")
        for side in (comparison.a, comparison.b)
        for picture in side.pictures
    )


def _numerics(side: Side) -> FormNumerics | None:
    return side.form.numerics if side.form else None


def _rows(side: Side) -> Iterator[tuple[str, ...]]:
    found = _numerics(side)
    if found is None:
        return
    beside = {"itself": "a second call", "eager": "eager", "reference": f"{found.reference_dtype}, the reference"}
    for difference in (found.against_eager, found.against_reference, found.against_itself):
        for each in difference.tensors[:MOST_TENSORS] if difference else ():
            yield _row(side, each, beside[difference.other] if difference else "")


def _row(side: Side, each: TensorDifference, beside: str) -> tuple[str, ...]:
    name = f"{side.label} {each.path}".strip()
    if each.problem:
        return clipped(printable(name), 60), f"{beside}: {each.problem}", *(MISSING,) * 5
    errors = [_error(figure) for figure in (each.max_abs, each.mean_abs, each.relative)]
    angle = _error(_one_less(each)) if each.cosine is not None else MISSING
    return clipped(printable(name), 60), _beside(each, beside), *errors, angle, percent(each.equal_share)


def _one_less(each: TensorDifference) -> float | None:
    """One less the cosine; 0 of equal tensors, whose cosine is 1 up to rounding."""
    if each.cosine is None:
        return None
    return 0.0 if each.max_abs == 0 else max(1 - each.cosine, 0.0)


def _beside(each: TensorDifference, beside: str) -> str:
    if each.first_divergence is not None:
        return f"{beside}: equal up to place {count(each.first_divergence)}"
    return f"{beside}: {count(each.nonfinite)} not finite on one side" if each.nonfinite else beside


def _error(figure: float | None) -> str:
    if figure is None:
        return MISSING
    return "0" if figure == 0 else f"{figure:.2g}".replace("-", "\N{MINUS SIGN}")


def _notes(side: Side) -> Iterator[str]:
    found = _numerics(side)
    if found is None:
        return
    if found.no_reference:
        yield f"There is no reference: {printable(found.no_reference)}."
    longest = max(map(_length, (found.against_eager, found.against_reference, found.against_itself)))
    if longest > MOST_TENSORS:
        yield f"{longest - MOST_TENSORS} more tensors of each output are in the JSON."
    if found.skipped:
        yield f"Not compared, because they are no tensors: {printable(', '.join(found.skipped))}."


def _length(difference: OutputDifference | None) -> int:
    return len(difference.tensors) if difference else 0
