"""Why outputs are judged to be as accurate as eager code's, or not."""

from tracekit.model.bounded import Real, Text, Whole
from tracekit.model.note import Noted
from tracekit.model.numerics import AccuracyReason
from tracekit.numbers import percent


class Equal(AccuracyReason):
    code = "equal"

    def long(self) -> str:
        return "Bitwise equal to eager."


class NoTensors(AccuracyReason):
    code = "no_tensors"

    def long(self) -> str:
        return "The outputs hold no comparable tensors."


class OfTensor(AccuracyReason):
    """A reason that lies in one tensor of the output."""

    path: Text

    @property
    def place(self) -> str:
        return f"Output {self.path}" if self.path else "The output"


def and_no_reference(missing: Noted | None) -> str:
    return f" No reference: {missing.long()}." if missing else ""


def of_itself(difference: float | None) -> str:
    return "" if difference is None else f", {difference:.2g} between two calls"


class SameWithoutFiniteNumbers(OfTensor):
    code = "same_without_finite_numbers"

    def long(self) -> str:
        return f"{self.place} is equal to eager's, without finite numbers."


class NotComparable(OfTensor):
    code = "not_comparable"
    mismatch: Noted
    no_reference: Noted | None = None

    def long(self) -> str:
        return f"{self.place} {self.mismatch.long()}.{and_no_reference(self.no_reference)}"


class NotHeldAgainstReference(OfTensor):
    code = "not_held_against_reference"
    reference: Text

    def long(self) -> str:
        return f"{self.place} could not be compared with {self.reference}."


class BesideReference(OfTensor):
    """The error of compiled code beside eager's."""

    compiled: Real
    eager: Real
    reference: Text
    allowed: Real

    @property
    def errors(self) -> str:
        return f"error {self.compiled:.2g} vs {self.reference}; eager {self.eager:.2g}"

    def short(self) -> str:
        return f"error {self.compiled:.2g} vs {self.reference}, eager {self.eager:.2g}, tolerance {self.allowed:.2g}"


class Error(BesideReference):
    code = "error"
    compiled_from_itself: Real | None = None

    def long(self) -> str:
        return f"{self.place}: {self.errors}, tolerance {self.allowed:.2g}{of_itself(self.compiled_from_itself)}."

    def short(self) -> str:
        return f"relative {super().short()}"


class LargestError(BesideReference):
    code = "largest_error"
    compiled_from_itself: Real | None = None

    def long(self) -> str:
        own = of_itself(self.compiled_from_itself)
        return f"{self.place}: largest {self.errors}, tolerance {self.allowed:.2g}{own}."


class RoundingAmplified(BesideReference):
    code = "rounding_amplified"

    def long(self) -> str:
        return f"{self.place}: {self.errors}: the model amplifies rounding."


class NoNumbers(OfTensor):
    code = "no_numbers"
    reference: Text
    no_reference: Noted | None = None

    def long(self) -> str:
        return f"{self.place} holds no numbers.{and_no_reference(self.no_reference)}"


class NoFiniteNumbers(OfTensor):
    code = "no_finite_numbers"
    reference: Text
    no_reference: Noted | None = None

    def long(self) -> str:
        told = f"{self.place} has no finite numbers to compare with {self.reference}."
        return f"{told}{and_no_reference(self.no_reference)}"


class Zeros(OfTensor):
    code = "zeros"
    reference: Text
    compiled: Real
    eager: Real
    no_reference: Noted | None = None

    def long(self) -> str:
        told = f"{self.place} is 0 in {self.reference}; error {self.compiled:.2g}, eager {self.eager:.2g}."
        return f"{told}{and_no_reference(self.no_reference)}"

    def short(self) -> str:
        return f"error {self.compiled:.2g} vs {self.reference}, eager {self.eager:.2g}"


class NotFinite(OfTensor):
    code = "not_finite"
    more: Whole
    reference: Text | None  #: None where that is eager code.
    no_reference: Noted | None = None

    def long(self) -> str:
        beside = f"in {self.reference}" if self.reference else "eager"
        told = f"{self.place}: {self.more:,} more numbers are NaN or infinite than {beside}."
        return f"{told}{and_no_reference(self.no_reference)}"


class IntegersBesideReference(OfTensor):
    """The share of integers that match, of compiled and of eager code."""

    compiled_share: Real
    eager_share: Real
    reference: Text

    @property
    def shares(self) -> str:
        compiled, eager = percent(self.compiled_share), percent(self.eager_share)
        return f"{self.place}: {compiled} of integers match {self.reference}; eager {eager}"


class Integers(IntegersBesideReference):
    code = "integers"

    def long(self) -> str:
        return f"{self.shares}."


class IntegersDiverge(IntegersBesideReference):
    code = "integers_diverge"

    def long(self) -> str:
        return f"{self.shares}: one near-tie changes all that follow."


class IntegersBesideEager(OfTensor):
    code = "integers_beside_eager"
    share: Real
    no_reference: Noted | None = None

    def long(self) -> str:
        return f"{self.place}: {percent(self.share)} of integers match eager.{and_no_reference(self.no_reference)}"


class Difference(OfTensor):
    code = "difference"
    compiled: Real
    allowed: Real
    compiled_from_itself: Real | None = None
    no_reference: Noted | None = None

    def long(self) -> str:
        difference = f"difference {self.compiled:.2g}, tolerance {self.allowed:.2g}"
        told = f"{self.place}: {difference}{of_itself(self.compiled_from_itself)}."
        return f"{told}{and_no_reference(self.no_reference)}"

    def short(self) -> str:
        return f"relative difference {self.compiled:.2g}, tolerance {self.allowed:.2g}"


class RandomNumbers(OfTensor):
    code = "random_numbers"
    difference: Real | None
    another_seed: Real | None
    no_reference: Noted | None = None

    def long(self) -> str:
        told = f"{self.place} differs from eager's as under another seed"
        if self.difference is not None:
            told += f": {self.difference:.2g}, another seed {self.another_seed:.2g}"
        return f"{told}.{and_no_reference(self.no_reference)}"
