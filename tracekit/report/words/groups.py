"""What a group of kernels, and a part of the waterfall, is called, and what shows that a kernel was exchanged."""

from collections.abc import Iterator, Sequence
from typing import Any

from tracekit.model.groups import Evidence, EvidenceKind, GroupLabel, KernelCounts, Label
from tracekit.names import short_kernel_name
from tracekit.numbers import count, counted, duration
from tracekit.report.words.saying import Sentence, say

Facts = dict[str, Any]

#: Characters of a kernel's name that are shown.
LONGEST_NAME = 48

#: Groups that were told by their names alone.
FAMILIES = {
    "gemm": "matmuls",
    "attention": "attention",
    "convolution": "convolutions",
    "communication": "communication",
    "memcpy": "memory copies",
    "memset": "memory sets",
    "element_wise": "element-wise and reduction kernels",
}
#: Communication with nothing beside it.
EXPOSED = "exposed communication"
#: What is said beside any figure of communication: one rank does not tell it from transfer.
WAITING_INCLUDED = "waiting for other ranks included"
#: Parts of the waterfall that are no group.
PARTS = {
    "other_gpu_work": "other GPU work",
    "unchanged_kernels": "unchanged kernels",
    "overlap_correction": "overlap correction",
    "outside_steps": "work launched outside the steps",
    "exposed_communication": f"{EXPOSED}, {WAITING_INCLUDED}",
    "exposed_transfer": "exposed transfer: how much is transferred",
    "transfer_overlap": "exposed transfer: how much of it compute covers",
    "exposed_waiting": "exposed waiting for other ranks",
    "compute": "GPU compute",
    "overlap_price": "kernels slowed beside communication (est.)",
}
#: What a library kernel is called, where that is not its kind.
LIBRARIES = {"product": "matmul"}
ONLY = {"eliminated": ", not in B", "added": ", only in B", "unmatched": ", no match"}


def label_words(label: Label) -> str:
    """`x38: 14 kernels -> 2 Triton (rms_norm, mul, add)`; what is unchanged is called by its kernel's name."""
    if isinstance(label, str):
        return PARTS.get(label, label)
    repeats = repeats_word(label.repeats)
    return f"{f'x{repeats}: ' if repeats else ''}{work_words(label)}"


def repeats_word(repeats: float) -> str:
    """`38`; a mean per step is rounded. Empty where it is once."""
    return "" if repeats < 1.5 else count(repeats)


def work_words(label: GroupLabel, arrow: str = " -> ") -> str:
    """The label without how often it is there."""
    if label.family is not None:
        if label.kind == "communication":
            return f"{FAMILIES[label.family]}, {WAITING_INCLUDED}"
        told = "not matched by name" if label.kind == "unmatched" else "matched by family only"
        return f"{FAMILIES[label.family]} ({told})"
    sides = arrow.join(_kernels(side) for side in (label.before, label.after) if side is not None)
    what = f"{sides}{ONLY.get(label.kind, '')}"
    return f"{what} ({operators_word(label)})" if label.operators else what


def operators_word(label: GroupLabel) -> str:
    return ", ".join([*label.operators, *(["..."] if label.more_operators else [])])


def _kernels(side: KernelCounts) -> str:
    """`3 kernels, 1 Triton`, `2 matmuls + 1 kernel`, `attention`."""
    noun = "kernel" if side.count == 1 else "kernels"
    if not side.libraries:
        if side.triton == side.count:
            return f"{side.count} Triton"
        return f"{side.count} {noun}, {side.triton} Triton" if side.triton else f"{side.count} {noun}"
    rest = side.count - sum(number for _, number in side.libraries)
    libraries = ((LIBRARIES.get(kind, kind), number) for kind, number in side.libraries)
    named = [kind if number == 1 else f"{number} {kind}s" for kind, number in libraries]
    return " + ".join([*named, *([counted(rest, "kernel")] if rest else [])])


def evidence_sentences(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(say(EVIDENCE[each.kind], each.facts) for each in evidence)


def epilogue_lost(*, kernels_beside: int) -> str:
    by = f": {counted(kernels_beside, 'kernel')} beside it" if kernels_beside else ""
    return f"The matmul lost its epilogue (bias, activation){by}."


def _attention_differences(facts: Facts) -> Iterator[str]:
    for name, change in facts.items():
        before, after = change["before"], change["after"]
        if name == "operator":
            yield f"{before} -> {after}"
        elif name == "is_causal":
            yield f"is_causal {before} -> {after}"
        elif name == "mask" and before is None:
            yield f"a mask of {_size(after)} added"
        elif name == "mask" and after is None:
            yield f"the mask of {_size(before)} dropped"
        else:
            yield f"{name} {_size(before)} -> {_size(after)}"


def same_kernel_other_time(*, before_us: float, after_us: float, inputs: Facts | None = None) -> str:
    took = f"Same kernel, {duration(before_us)} -> {duration(after_us)} per call."
    if inputs is None:
        return took
    before, after = (", ".join(map(_size, inputs[side])) for side in ("before", "after"))
    return f"{took} Inputs: {before} -> {after}."


def _size(dims: Sequence[int]) -> str:
    return "x".join(map(str, dims))


def _short(kernel: str) -> str:
    return short_kernel_name(kernel, LONGEST_NAME)


EVIDENCE: dict[EvidenceKind, Sentence] = {
    "attention_lost": lambda kernel, products, other_kernels: (
        f"Fused attention ({_short(kernel)}) replaced by {counted(products, 'matmul')} and"
        f" {counted(other_kernels, 'kernel')}."
    ),
    "single_precision": lambda products, before: (
        f"{counted(products, 'matmul')} in float32, before in {before or 'another precision'}."
    ),
    "epilogue_lost": epilogue_lost,
    "other_operator": lambda work, before, after: f"Another {LIBRARIES.get(work, work)} operator: {before} -> {after}.",
    "inputs_prepared": "{kernels:counted kernel} added to prepare inputs or results.",
    "split_along_k": lambda is_split: "Split-K added." if is_split else "Split-K dropped.",
    "other_kernel": lambda before, after: f"Another kernel: {_short(before)} -> {_short(after)}.",
    "channels_moved_last": "Convolution layout: NCHW -> NHWC (channels last).",
    "attention_asked_otherwise": lambda **changes: f"Attention call: {'; '.join(_attention_differences(changes))}.",
    "same_kernel_other_time": same_kernel_other_time,
}
