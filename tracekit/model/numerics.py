"""How far what a form returns is from what it should return. Field names are those of `run.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracekit.model.bounded import Amount, Count, FileName, Many, Ratio, Real, Text
from tracekit.model.noted import Noted

#: What an output is held against: the eager form, a second call of the same form, or the model in a higher precision.
Other = Literal["eager", "itself", "reference"]

#: How far apart the numbers of one dtype are, relative to their size: half the step behind 1 (IEEE 754; bfloat16 keeps
#: 8 bits of a number, float16 11, float32 24, float64 53).
UNIT_ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """One tensor of an output beside the same tensor of another.

    `path` is where it stands in the output (`.logits`, `[0]`; empty where the output is the tensor). Errors are
    over the elements that are finite on both sides, taken in float64: `max_abs` is the largest, `mean_abs` their
    mean, `equal_share` the share of all `elements` that are the same, 0 to 1. `relative` is the L2 norm of the
    difference over that of the other, `cosine` the cosine of the angle between them; None where there is nothing to
    divide by, and for integers. `other_max` is the largest magnitude in the other. `nonfinite` counts the elements
    that are NaN or infinite on one side and not the same on the other. `first_divergence` is the first place along
    the last axis at which any row of integers differs. `problem` says why nothing could be compared: the tensor is
    missing, or has another shape; `mismatch` are its facts.
    """

    path: Text
    dtype: Text
    shape: Many[Count]
    elements: Count
    max_abs: Amount | None = None
    mean_abs: Amount | None = None
    relative: Amount | None = None
    cosine: Real | None = None
    other_max: Amount | None = None
    equal_share: Amount | None = None
    nonfinite: Count = 0
    first_divergence: Count | None = None
    problem: Text | None = None
    mismatch: Noted | None = None

    @property
    def counts(self) -> bool:
        """Whether these are integers (tokens, classes, masks), which are equal or not, instead of measures."""
        return self.dtype not in UNIT_ROUNDOFF


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """A whole output beside another one, tensor by tensor in the order in which they stand in it."""

    other: Other
    tensors: Many[TensorDifference]


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A small picture of the first image of an output, in the run folder. `scale` is by what its values were multiplied
    (a difference is too small to be seen otherwise)."""

    kind: Literal["output", "difference"]
    path: FileName
    scale: Ratio = 1.0


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture with its content: a PNG file's bytes, and the words under it."""

    caption: str
    png: bytes


@dataclass(frozen=True, slots=True)
class FormNumerics:
    """What one form returns, held against whatever there is to hold it against; calls of their own, never timed.

    `against_itself` is the form's floor: what a second call with the same seeds changes. `reference_dtype` is what the
    reference was computed in; where there is none, `no_reference` says why, and `reference_missing` are
    its facts. `skipped` names the kinds of things in the
    output that are no tensors.
    """

    dtype: Text
    against_itself: OutputDifference | None
    against_eager: OutputDifference | None
    against_reference: OutputDifference | None
    reference_dtype: Text | None
    no_reference: Text | None
    pictures: Many[PictureFile] = ()
    skipped: Many[Text] = ()
    reference_missing: Noted | None = None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Whether compiled code still computes what eager code does, by the rules of docs/numerics.md.

    `equal`: bit for bit. `undecided`: the outputs differ and nothing says which is nearer the truth. `because` says it
    in words, with the figures it rests on.
    """

    result: Literal["equal", "as_accurate", "less_accurate", "undecided"]
    basis: Literal["reference", "tolerance", "bits"]
    because: str
