"""Why outputs are judged to be as accurate as eager code's, or not."""

from tracekit.model.bounded import Real, Text, Whole
from tracekit.model.note import Noted
from tracekit.model.numerics import AccuracyReason
from tracekit.numbers import percent


class Equal(AccuracyReason):
    code = "equal"
    says = "Bitwise equal to eager."


class NoTensors(AccuracyReason):
    code = "no_tensors"
    says = "The outputs hold no comparable tensors."


class OfTensor(AccuracyReason):
    """A reason that lies in one tensor of the output: `says`, or `told()`, goes on behind the tensor's place."""

    path: Text

    @property
    def compiled_from_itself(self) -> float | None:
        """How far apart two calls of compiled code are."""
        return None

    def told(self) -> str:
        return self.says.format(**vars(self))

    def long(self) -> str:
        place = f"Output {self.path}" if self.path else "The output"
        itself, missing = self.compiled_from_itself, self.no_reference
        of_itself = "" if itself is None else f", {itself:.2g} between two calls"
        return f"{place}{self.told()}{of_itself}.{f' No reference: {missing.long()}.' if missing else ''}"


class SameWithoutFiniteNumbers(OfTensor):
    code = "same_without_finite_numbers"
    says = " is equal to eager's, without finite numbers"


class NotComparable(OfTensor):
    code = "not_comparable"
    mismatch: Noted
    no_reference: Noted | None = None

    def told(self) -> str:
        return f" {self.mismatch.long()}"


class NotHeldAgainstReference(OfTensor):
    code = "not_held_against_reference"
    reference: Text
    says = " could not be compared with {reference}"


class BesideReference(OfTensor):
    """The error of compiled code beside eager's."""

    compiled: Real
    eager: Real
    reference: Text
    allowed: Real
    says_short = "error {compiled:.2g} vs {reference}, eager {eager:.2g}, tolerance {allowed:.2g}"


class Error(BesideReference):
    code = "error"
    compiled_from_itself: Real | None = None
    says = ": error {compiled:.2g} vs {reference}; eager {eager:.2g}, tolerance {allowed:.2g}"
    says_short = f"relative {BesideReference.says_short}"


class LargestError(BesideReference):
    code = "largest_error"
    compiled_from_itself: Real | None = None
    says = ": largest error {compiled:.2g} vs {reference}; eager {eager:.2g}, tolerance {allowed:.2g}"


class RoundingAmplified(BesideReference):
    code = "rounding_amplified"
    says = ": error {compiled:.2g} vs {reference}; eager {eager:.2g}: the model amplifies rounding"


class NoNumbers(OfTensor):
    code = "no_numbers"
    reference: Text
    no_reference: Noted | None = None
    says = " holds no numbers"


class NoFiniteNumbers(OfTensor):
    code = "no_finite_numbers"
    reference: Text
    no_reference: Noted | None = None
    says = " has no finite numbers to compare with {reference}"


class Zeros(OfTensor):
    code = "zeros"
    reference: Text
    compiled: Real
    eager: Real
    no_reference: Noted | None = None
    says = " is 0 in {reference}; error {compiled:.2g}, eager {eager:.2g}"
    says_short = "error {compiled:.2g} vs {reference}, eager {eager:.2g}"


class NotFinite(OfTensor):
    code = "not_finite"
    more: Whole
    reference: Text | None  #: None where that is eager code.
    no_reference: Noted | None = None

    def told(self) -> str:
        beside = f"in {self.reference}" if self.reference else "eager"
        return f": {self.more:,} more numbers are NaN or infinite than {beside}"


class IntegersBesideReference(OfTensor):
    """The share of integers that match, of compiled and of eager code."""

    compiled_share: Real
    eager_share: Real
    reference: Text

    def told(self) -> str:
        compiled, eager = percent(self.compiled_share), percent(self.eager_share)
        return f": {compiled} of integers match {self.reference}; eager {eager}"


class Integers(IntegersBesideReference):
    code = "integers"


class IntegersDiverge(IntegersBesideReference):
    code = "integers_diverge"

    def told(self) -> str:
        return f"{super().told()}: one near-tie changes all that follow"


class IntegersBesideEager(OfTensor):
    code = "integers_beside_eager"
    share: Real
    no_reference: Noted | None = None

    def told(self) -> str:
        return f": {percent(self.share)} of integers match eager"


class Difference(OfTensor):
    code = "difference"
    compiled: Real
    allowed: Real
    compiled_from_itself: Real | None = None
    no_reference: Noted | None = None
    says = ": difference {compiled:.2g}, tolerance {allowed:.2g}"
    says_short = "relative difference {compiled:.2g}, tolerance {allowed:.2g}"


class RandomNumbers(OfTensor):
    code = "random_numbers"
    difference: Real | None
    another_seed: Real | None
    no_reference: Noted | None = None

    def told(self) -> str:
        told = " differs from eager's as under another seed"
        if self.difference is not None:
            told += f": {self.difference:.2g}, another seed {self.another_seed:.2g}"
        return told
