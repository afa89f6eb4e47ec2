"""How far what a form returns is from what it should return. Field names are those of `run.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tracekit.model.bounded import Amount, Count, FileName, Many, Ratio, Real, Text, doc
from tracekit.model.estimate import Statement
from tracekit.model.note import Noted

#: What an output is held against: the eager form, a second call of the same form, or the model in a higher precision.
Other = Literal["eager", "itself", "reference"]

#: How far apart the numbers of one dtype are, relative to their size: half the step behind 1 (IEEE 754; bfloat16 keeps
#: 8 bits of a number, float16 11, float32 24, float64 53).
UNIT_ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """One tensor of an output beside the same tensor of another. Errors are over the elements that are finite on both
    sides, taken in float64; None where there is nothing to divide by, and for integers."""

    path: Annotated[Text, doc("Its place in the output (`.logits`, `[0]`); empty where it is the output.")]
    dtype: Text
    shape: Many[Count]
    elements: Annotated[Count, doc("How many.")]
    max_abs: Annotated[Amount | None, doc("The largest error.")] = None
    mean_abs: Annotated[Amount | None, doc("The errors' mean.")] = None
    relative: Annotated[Amount | None, doc("The L2 norm of the difference over that of the other.")] = None
    cosine: Annotated[Real | None, doc("Of the angle between them.")] = None
    other_max: Annotated[Amount | None, doc("The largest magnitude in the other.")] = None
    equal_share: Annotated[Amount | None, doc("The share of all elements that are the same, 0 to 1.")] = None
    nonfinite: Annotated[Count, doc("Elements that are NaN or infinite on one side and not the same on the other.")] = 0
    first_divergence: Annotated[Count | None, doc("Along the last axis, of integers.")] = None
    problem: Annotated[Text | None, doc("Why nothing could be compared: it is missing, or has another shape.")] = None
    mismatch: Annotated[Noted | None, doc("The facts of `problem`.")] = None

    @property
    def counts(self) -> bool:
        """Whether these are integers (tokens, classes, masks), which are equal or not, instead of measures."""
        return self.dtype not in UNIT_ROUNDOFF


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """A whole output beside another one."""

    other: Other
    tensors: Annotated[Many[TensorDifference], doc("In the order in which they stand in it.")]


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A small picture of the first image of an output, in the run folder."""

    kind: Literal["output", "difference"]
    path: FileName
    scale: Annotated[Ratio, doc("By what its values were multiplied, for a difference to be seen.")] = 1.0


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture with its content: a PNG file's bytes, and the words under it."""

    caption: str
    png: bytes


@dataclass(frozen=True, slots=True)
class FormNumerics:
    """What one form returns, held against whatever there is to hold it against; calls of their own, never timed."""

    dtype: Text
    against_itself: Annotated[OutputDifference | None, doc("What a second call with the same seeds changes.")]
    against_eager: OutputDifference | None
    against_reference: OutputDifference | None
    reference_dtype: Annotated[Text | None, doc("What the reference was computed in.")]
    no_reference: Annotated[Text | None, doc("Why there is none.")]
    pictures: Many[PictureFile] = ()
    skipped: Annotated[Many[Text], doc("The kinds of things in the output that are no tensors.")] = ()
    reference_missing: Annotated[Noted | None, doc("The facts of `no_reference`.")] = None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Whether compiled code still computes what eager code does, by the rules of docs/numerics.md. `equal` is bit for
    bit; `undecided`: the outputs differ and nothing says which is nearer the truth."""

    result: Literal["equal", "as_accurate", "less_accurate", "undecided"]
    basis: Literal["reference", "tolerance", "bits"]
    reason: Annotated[Statement, doc("Why, with the figures it rests on.")]
