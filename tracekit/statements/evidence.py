"""What shows that a library kernel was exchanged, or that it was asked for something else."""

from collections.abc import Iterator, Sequence

from tracekit.model.groups import Change, Evidence, WorkKind
from tracekit.names import short_kernel_name
from tracekit.numbers import counted, duration

#: Characters of a kernel's name that are shown.
LONGEST_NAME = 48

#: What a library kernel is called, where that is not its kind.
LIBRARIES: dict[WorkKind, str] = {"product": "matmul"}

Sizes = Sequence[int]


def work_name(kind: WorkKind) -> str:
    return LIBRARIES.get(kind, kind)


def short_name(kernel: str) -> str:
    return short_kernel_name(kernel, LONGEST_NAME)


def size_words(dims: Sizes) -> str:
    """`8x16`."""
    return "x".join(map(str, dims))


class AttentionLost(Evidence):
    code = "attention_lost"
    kernel: str
    products: int
    other_kernels: int

    def long(self) -> str:
        replaced_by = f"{counted(self.products, 'matmul')} and {counted(self.other_kernels, 'kernel')}"
        return f"Fused attention ({short_name(self.kernel)}) replaced by {replaced_by}."


class SinglePrecision(Evidence):
    code = "single_precision"
    products: int
    before: str | None  #: The type that they had; None where that is not known.

    def long(self) -> str:
        return f"{counted(self.products, 'matmul')} in float32, before in {self.before or 'another precision'}."


class EpilogueLost(Evidence):
    code = "epilogue_lost"
    kernels_beside: int

    def long(self) -> str:
        by = f": {counted(self.kernels_beside, 'kernel')} beside it" if self.kernels_beside else ""
        return f"The matmul lost its epilogue (bias, activation){by}."


class OtherOperator(Evidence):
    code = "other_operator"
    work: WorkKind
    before: str
    after: str

    def long(self) -> str:
        return f"Another {work_name(self.work)} operator: {self.before} -> {self.after}."


class InputsPrepared(Evidence):
    code = "inputs_prepared"
    kernels: int

    def long(self) -> str:
        return f"{counted(self.kernels, 'kernel')} added to prepare inputs or results."


class SplitAlongK(Evidence):
    code = "split_along_k"
    is_split: bool

    def long(self) -> str:
        return "Split-K added." if self.is_split else "Split-K dropped."


class OtherKernel(Evidence):
    code = "other_kernel"
    before: str
    after: str

    def long(self) -> str:
        return f"Another kernel: {short_name(self.before)} -> {short_name(self.after)}."


class ChannelsMovedLast(Evidence):
    code = "channels_moved_last"
    says = "Convolution layout: NCHW -> NHWC (channels last)."


class AttentionAskedOtherwise(Evidence):
    """Each is None where it is the same on both sides, or not known."""

    code = "attention_asked_otherwise"
    operator: Change[str] | None = None
    is_causal: Change[bool] | None = None
    mask: Change[Sizes | None] | None = None  #: None of a side without one.
    query: Change[Sizes] | None = None
    key: Change[Sizes] | None = None
    value: Change[Sizes] | None = None

    def long(self) -> str:
        return f"Attention call: {'; '.join(self._changes())}."

    def _changes(self) -> Iterator[str]:
        if self.operator:
            yield f"{self.operator.before} -> {self.operator.after}"
        if self.is_causal:
            yield f"is_causal {self.is_causal.before} -> {self.is_causal.after}"
        if self.mask:
            before, after = self.mask.before, self.mask.after
            if before is None:
                yield f"a mask of {size_words(after or ())} added"
            elif after is None:
                yield f"the mask of {size_words(before)} dropped"
            else:
                yield f"mask {size_words(before)} -> {size_words(after)}"
        for name, sizes in (("query", self.query), ("key", self.key), ("value", self.value)):
            if sizes:
                yield f"{name} {size_words(sizes.before)} -> {size_words(sizes.after)}"


class SameKernelOtherTime(Evidence):
    code = "same_kernel_other_time"
    before_us: float
    after_us: float
    inputs: Change[Sequence[Sizes]] | None = None  #: None where they are the same, or not known.

    def long(self) -> str:
        took = f"Same kernel, {duration(self.before_us)} -> {duration(self.after_us)} each."
        if self.inputs is None:
            return took
        before, after = (", ".join(map(size_words, sizes)) for sizes in (self.inputs.before, self.inputs.after))
        return f"{took} Inputs: {before} -> {after}."
