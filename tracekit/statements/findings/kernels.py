"""Kernels that are fewer, take longer, were lost, or are too small."""

from collections.abc import Sequence

from tracekit.model.comparison import FindingStatement
from tracekit.model.groups import Evidence
from tracekit.numbers import count, counted, duration, duration_change, percent

#: The reason known; `comparison/findings/slower_kernels.py` tells what it was measured on.
MASKS = "Possible cause: a mask made inside compiled code, which fused kernels do not accept."
#: What is said beside the advice to compile layers one by one.
PRICE = "Layers compiled one by one keep eager's attention, but each checks guards: slower if host-bound."


class FewerKernels(FindingStatement):
    code = "fewer_kernels"
    usual_severity = "info"
    a_kernels: float
    b_kernels: float
    a_busy_us: float
    b_busy_us: float
    without_communication: bool | None = None  #: Where a side communicates.

    def title(self) -> str:
        return f"{count(self.a_kernels - self.b_kernels)} fewer kernels"

    def long(self) -> str:
        busy = busy_words(self.without_communication)
        return (
            f"{count(self.a_kernels)} -> {count(self.b_kernels)} kernels, {busy} {duration(self.a_busy_us)} ->"
            f" {duration(self.b_busy_us)}."
        )


class MoreGpuTime(FindingStatement):
    code = "more_gpu_time"
    side: str
    a_kernels: float
    b_kernels: float
    a_busy_us: float
    b_busy_us: float
    without_communication: bool | None = None  #: Where a side communicates.

    def title(self) -> str:
        busy = "Compute" if self.without_communication else "GPU busy"
        return f"{busy} time of {self.side} is {percent(self.b_busy_us / self.a_busy_us - 1, 0)} longer"

    def long(self) -> str:
        beside = " Kernels run slower beside communication." if self.without_communication else ""
        return (
            f"{busy_words(self.without_communication)} {duration(self.a_busy_us)} -> {duration(self.b_busy_us)},"
            f" {count(self.a_kernels)} -> {count(self.b_kernels)} kernels.{beside}"
        )


def busy_words(without_communication: bool | None) -> str:
    return "GPU busy without communication" if without_communication else "GPU busy"


class LostAttention(FindingStatement):
    code = "lost_attention"
    a: str
    b: str
    attention_before_us: float
    attention_after_us: float
    products_more_us: float
    in_float32: bool  #: The products that took its place.
    says_title = "Fused attention lost"
    says_why = "keeps fused attention"

    def long(self) -> str:
        products = f", matmuls {duration(self.products_more_us)} more" if self.products_more_us > 0 else ""
        types = " in float32" if self.in_float32 else ""
        return (
            f"Attention kernels: {duration(self.attention_before_us)} {self.a}, {duration(self.attention_after_us)}"
            f" {self.b}{products}: likely unfused into matmuls{types} and a softmax. {MASKS} {PRICE}"
        )


class SlowerAttention(FindingStatement):
    code = "slower_attention"
    before_us: float
    after_us: float
    shown_by: Sequence[Evidence]
    says_why = "keeps eager's attention"

    def title(self) -> str:
        return f"Attention takes {self.after_us / self.before_us:.1f}x as long"

    def long(self) -> str:
        return " ".join((*took_words(self.before_us, self.after_us, self.shown_by), PRICE))


class SlowerConvolutions(FindingStatement):
    code = "slower_convolutions"
    convolutions: int
    before_us: float
    after_us: float
    shown_by: Sequence[Evidence]
    laid_out_by_inductor: bool
    others_gained_us: float | None  #: Other convolutions by that layout; None where Inductor did not choose it.
    says_why = "keeps eager's convolution layout"

    def title(self) -> str:
        takes = "takes" if self.convolutions == 1 else "take"
        slower = f"{self.after_us / self.before_us:.1f}x as long"
        return f"{counted(self.convolutions, 'convolution')} {takes} {slower}"

    def long(self) -> str:
        told = took_words(self.before_us, self.after_us, self.shown_by)
        if self.laid_out_by_inductor:
            told.append("Inductor chose this layout.")
            if gained_us := self.others_gained_us:
                told.append(f"Other convolutions with this layout: {duration_change(-gained_us)}.")
        return " ".join(told)


def took_words(before_us: float, after_us: float, shown_by: Sequence[Evidence]) -> list[str]:
    return [f"{duration(before_us)} -> {duration(after_us)}.", *(each.long() for each in shown_by)]


class SmallKernels(FindingStatement):
    code = "small_kernels"
    usual_severity = "info"
    side: str
    small_us: float
    whole_us: float
    says_title = "Latency-bound: kernels of {side} are too small to fill the GPU"

    def long(self) -> str:
        share = percent(self.small_us / self.whole_us, 0)
        return (
            f"{share} of the call ({duration(self.small_us)} of {duration(self.whole_us)}) are kernels"
            " below 20 us and 30 % of both rooflines (est.). Larger batches and fusion fill the GPU."
        )
