"""How far what a form returns is from what it should return. Field names are those of `run.json`."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from tracekit.model.bounded import Amount, Count, FileName, Many, Ratio, Real, Text
from tracekit.model.note import Noted
from tracekit.model.statement import Statement, Written

#: What an output is held against: the eager form, a second call of the same form, the model in a higher precision, or a
#: call under another seed.
Other = Literal["eager", "itself", "reference", "another_seed"]

#: How far apart the numbers of one dtype are, relative to their size: half the step behind 1 (IEEE 754; bfloat16 keeps
#: 8 bits of a number, float16 11, float32 24, float64 53).
UNIT_ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}


class TensorDifference(Struct, frozen=True):
    """One tensor of an output beside the same tensor of another. Errors are over the elements that are finite on both
    sides, taken in float64; None where there is nothing to divide by, and for integers."""

    path: Text  #: Its place in the output (`.logits`, `[0]`); empty where it is the output.
    dtype: Text
    shape: Many[Count]
    elements: Count  #: How many.
    max_abs: Amount | None = None  #: The largest error.
    mean_abs: Amount | None = None  #: The errors' mean.
    relative: Amount | None = None  #: The L2 norm of the difference over that of the other.
    cosine: Real | None = None  #: Of the angle between them.
    other_max: Amount | None = None  #: The largest magnitude in the other.
    equal_share: Amount | None = None  #: The share of all elements that are the same, 0 to 1.
    nonfinite: Count = 0  #: Elements that are NaN or infinite on one side and not the same on the other.
    first_divergence: Count | None = None  #: Along the last axis, of integers.
    mismatch: Noted | None = None  #: Why nothing could be compared: it is missing, or has another shape.

    @property
    def counts(self) -> bool:
        """Whether these are integers (tokens, classes, masks), which are equal or not, instead of measures."""
        return self.dtype not in UNIT_ROUNDOFF


class OutputDifference(Struct, frozen=True):
    """A whole output beside another one."""

    other: Other
    tensors: Many[TensorDifference]  #: In the order in which they stand in it.


class PictureFile(Struct, frozen=True):
    """A small picture of the first image of an output, in the run folder."""

    kind: Literal["output", "difference"]
    path: FileName
    scale: Ratio = 1.0  #: By what its values were multiplied, for a difference to be seen.


class Picture(Struct, frozen=True):
    """A picture with its content: a PNG file's bytes, and the words under it."""

    caption: str
    png: bytes


class FormNumerics(Struct, frozen=True):
    """What one form returns, held against whatever there is to hold it against; calls of their own, never timed."""

    dtype: Text
    against_itself: OutputDifference | None  #: What a second call with the same seeds changes.
    against_eager: OutputDifference | None
    against_reference: OutputDifference | None
    reference_dtype: Text | None  #: What the reference was computed in.
    pictures: Many[PictureFile] = ()
    skipped: Many[Text] = ()  #: The kinds of things in the output that are no tensors.
    reference_missing: Noted | None = None  #: Why there is none.
    drawn_as_eager: bool = False  #: Of code compiled anew to draw eager's random numbers, not of the code timed.
    #: What another seed changes; None of compiled, and where eager draws no random numbers.
    against_another_seed: OutputDifference | None = None


class AccuracyReason(Statement):
    """Why outputs are judged as they are, with the figures that rests on."""

    as_written = Written
    #: The figures alone, `error 0.035 vs float32, eager 0.01, tolerance 0.034`; empty without any.
    says_short = ""

    @property
    def no_reference(self) -> Noted | None:
        """Why nothing of a higher precision is held against the outputs."""
        return None


class Accuracy(Struct, frozen=True):
    """Whether compiled code still computes what eager code does, by the rules of docs/numerics.md. `equal` is bit for
    bit; `undecided`: the outputs differ and nothing says which is nearer the truth; `random`: they differ as those of
    another seed do."""

    result: Literal["equal", "as_accurate", "less_accurate", "undecided", "random"]
    basis: Literal["reference", "tolerance", "bits"]
    reason: AccuracyReason  #: Why, with the figures it rests on.
    rank: int | None = None  #: Of several ranks the one whose outputs are worst, where others' are better.
    because: str = ""  #: What the reason says.

    def __post_init__(self) -> None:
        force_setattr(self, "because", self.reason.long())
