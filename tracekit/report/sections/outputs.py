"""What the forms return beside what they should return, and the GPU memory they took."""

import base64
from collections.abc import Callable

from tracekit.model.comparison import Comparison
from tracekit.model.gpu import FormMemory
from tracekit.model.numerics import Accuracy, TensorDifference
from tracekit.names import clipped
from tracekit.numbers import MINUS, MISSING, count, percent, size, size_change
from tracekit.report.document import Table, columns, filled_table
from tracekit.report.words.common import Sides, side_name

#: Tensors of one output that are listed; the first ones are what a model's user takes.
MOST_TENSORS = 6
COLUMNS = columns(
    "Output of", "Against", figures=("Largest error", "Mean error", "Relative", f"1 {MINUS} cosine", "Equal")
)
NOTE = "Errors are absolute, over numbers finite on both sides. Relative: by the L2 norm."

RESULTS = {
    "equal": "Outputs are equal",
    "as_accurate": "Outputs are as accurate as eager's",
    "less_accurate": "Outputs differ by more than rounding",
    "undecided": "Output accuracy is inconclusive",
    "random": "Outputs are random, not comparable",
}

MEMORY: dict[str, Callable[[FormMemory], int | None]] = {
    "Before the first call": lambda memory: memory.before_bytes,
    "Steady calls, allocated": lambda memory: memory.steady.allocated_bytes if memory.steady else None,
    "Steady calls, reserved": lambda memory: memory.steady.reserved_bytes if memory.steady else None,
    "Warm-up with compilation, allocated": lambda memory: memory.warmup.allocated_bytes,
    "Warm-up with compilation, reserved": lambda memory: memory.warmup.reserved_bytes,
    "CUDA-graph pools, own": lambda memory: memory.graph_pool_bytes,
    "CUDA-graph pools, earlier variants": lambda memory: memory.others_pool_bytes,
}

MEMORY_NOTE = (
    "Peaks: allocated by tensors, reserved by torch. They include the shared weights and what earlier variants left "
    "(workspaces, buffers), but no memory that libraries allocate outside of torch."
)


def accuracy_sentence(comparison: Comparison) -> str | None:
    """What was found of B's outputs, in a line; None where they were not compared."""
    accuracy = comparison.accuracy
    if accuracy is None:
        return None
    return f"{RESULTS[accuracy.result]}{on_rank(accuracy)}. {accuracy.reason.long()}"


def on_rank(accuracy: Accuracy) -> str:
    """Whose outputs are meant, where that is not every rank."""
    return "" if accuracy.rank is None else f" on rank {accuracy.rank}"


def numerics_table(comparison: Comparison) -> Table | None:
    """The outputs of both sides beside each other, themselves and a higher precision; None where none were compared."""
    rows, notes = [], [NOTE]
    for side in (comparison.a, comparison.b):
        if side.form is None or (found := side.form.numerics) is None:
            continue
        others = {"itself": "a second call", "eager": "eager", "reference": f"{found.reference_dtype}, the reference"}
        others["another_seed"] = "another seed"
        beside = (found.against_eager, found.against_reference, found.against_itself, found.against_another_seed)
        differences = list(filter(None, beside))
        for difference in differences:
            for each in difference.tensors[:MOST_TENSORS]:
                name = clipped(f"{side.label} {each.path}".strip(), 60)
                rows.append((name, *_errors(each, others[difference.other])))
        if found.drawn_as_eager:
            notes.append(f"{side.label}: compiled anew to draw eager's random numbers; the code timed draws others.")
        if found.reference_missing:
            notes.append(f"No reference: {found.reference_missing.long()}.")
        longest = max((len(each.tensors) for each in differences), default=0)
        if longest > MOST_TENSORS:
            notes.append(f"{longest - MOST_TENSORS} more tensors of each output are in the JSON.")
        if found.skipped:
            notes.append(f"Not compared, no tensors: {', '.join(found.skipped)}.")
    return filled_table("Outputs compared", COLUMNS, rows, " ".join(dict.fromkeys(notes)))


def _errors(each: TensorDifference, other: str) -> tuple[str, ...]:
    if each.mismatch:
        return f"{other}: {each.mismatch.long()}", *(MISSING,) * 5
    if each.first_divergence is not None:
        other = f"{other}: equal up to index {count(each.first_divergence)}"
    elif each.nonfinite:
        other = f"{other}: {count(each.nonfinite)} not finite on one side"
    # The cosine of equal tensors is 1 up to rounding.
    angle = None if each.cosine is None else 0.0 if each.max_abs == 0 else max(1 - each.cosine, 0.0)
    figures = (each.max_abs, each.mean_abs, each.relative, angle)
    shown = (MISSING if figure is None else f"{figure:.2g}".replace("-", MINUS) for figure in figures)
    return other, *shown, percent(each.equal_share)


def picture_sources(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """The images that the forms made: the words under each, and the picture itself as an address that holds it."""
    return tuple(
        (picture.caption, f"data:image/png;base64,{base64.b64encode(picture.png).decode()}")
        for side in (comparison.a, comparison.b)
        for picture in side.pictures
    )


def memory_table(sides: Sides) -> Table | None:
    """Peak memory of warm-up and of steady calls, and graph pools; None where no side was watched."""
    found = [side.form.memory if side.form else None for _, side in sides]
    if not any(found):
        return None
    rows = []
    for label, figure in MEMORY.items():
        figures = [figure(each) if each else None for each in found]
        known = [each for each in figures if each is not None]
        change = size_change(known[1] - known[0] if len(known) == 2 else None)
        rows.append((label, *map(size, figures), *([change] if len(sides) == 2 else [])))
    heads = [*(side_name(*each) for each in sides), *(["Change"] if len(sides) == 2 else [])]
    return Table("GPU memory", columns("GPU memory", figures=heads), tuple(rows), MEMORY_NOTE)
