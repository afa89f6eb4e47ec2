"""What is computed otherwise, or in other types than it could be."""

from collections.abc import Sequence

from tracekit.model.comparison import FindingStatement
from tracekit.model.numerics import AccuracyReason
from tracekit.numbers import count, duration, percent


class OutputsDiffer(FindingStatement):
    code = "outputs_differ"
    a: str
    b: str
    reason: AccuracyReason
    says_title = "{b} outputs differ from {a}'s"

    def long(self) -> str:
        return self.reason.long()


class SinglePrecision(FindingStatement):
    code = "single_precision"
    side: str
    products: float
    operators: Sequence[str]
    products_us: float
    busy_us: float
    read: int  #: Such products in all steps that were read.
    read_before: int  #: Those of A.
    before: str | None  #: A; None where a side is looked at alone, or A's matmuls have no types.
    by_compiling: bool = True  #: Whether A is the eager variant of the same run.
    says_title = "{side} has float32 matmuls"

    def long(self) -> str:
        return (
            f"{count(self.products)} matmuls per call ({', '.join(self.operators)}) have float32 inputs in a 16-bit"
            f" model: {duration(self.products_us)}, {percent(self.products_us / self.busy_us, 0)} of GPU time."
            f" {self._cause()}"
        )

    def _cause(self) -> str:
        if self.before is None:
            return "Look for .float() and float32 buffers."
        if self.read_before < self.read:
            told = f"{self.before} has {self.read_before} in its trace."
            return f"Compiling added them: {told}" if self.by_compiling else told
        return f"{self.before} has them too: look for .float() and float32 buffers."
