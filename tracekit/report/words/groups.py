"""What a group of kernels, and a part of the waterfall, is called, and what shows that a kernel was exchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tracekit.model.groups import Evidence, EvidenceKind, GroupLabel, KernelCounts, Label
from tracekit.names import short_kernel_name
from tracekit.numbers import counted, duration

Facts = dict[str, Any]

#: Characters of a kernel's name that are shown.
LONGEST_NAME = 48

#: Groups that were told by their names alone.
FAMILIES = {
    "gemm": "matrix products",
    "attention": "attention",
    "convolution": "convolutions",
    "communication": "communication",
    "memcpy": "memory copies",
    "memset": "memory sets",
    "element_wise": "element-wise and reduction kernels",
}
#: Parts of the waterfall that are no group.
PARTS = {
    "other_gpu_work": "other GPU work",
    "unchanged_kernels": "unchanged kernels",
    "overlap_correction": "overlap correction",
    "outside_steps": "work launched outside the steps",
}
ONLY = {"eliminated": ", gone", "added": ", in B only", "unmatched": ", no match"}


def label_words(label: Label) -> str:
    """`x38: 14 kernels -> 2 Triton (rms_norm, mul, add)`; what is unchanged is called by its kernel's name."""
    if isinstance(label, str):
        return PARTS.get(label, label)
    repeats = repeats_word(label.repeats)
    return f"{f'x{repeats}: ' if repeats else ''}{work_words(label)}"


def repeats_word(repeats: float) -> str:
    """`38`, `8.5`; empty where it is once."""
    return "" if repeats == 1 else f"{repeats:g}" if repeats == int(repeats) else f"{repeats:.1f}"


def work_words(label: GroupLabel, arrow: str = " -> ") -> str:
    """The label without how often it is there."""
    if label.family is not None:
        told = "no match by names" if label.kind == "unmatched" else "matched by family only"
        return f"{FAMILIES[label.family]} ({told})"
    sides = arrow.join(_kernels(side) for side in (label.before, label.after) if side is not None)
    what = f"{sides}{ONLY.get(label.kind, '')}"
    return f"{what} ({operators_word(label)})" if label.operators else what


def operators_word(label: GroupLabel) -> str:
    return ", ".join([*label.operators, *(["..."] if label.more_operators else [])])


def _kernels(side: KernelCounts) -> str:
    """`3 kernels, 1 of them Triton`, `attention, 2 products and 1 more`."""
    noun = "kernel" if side.count == 1 else "kernels"
    if not side.libraries:
        if side.triton == side.count:
            return f"{side.count} Triton"
        return f"{side.count} {noun}, {side.triton} of them Triton" if side.triton else f"{side.count} {noun}"
    rest = side.count - sum(number for _, number in side.libraries)
    *most, last = [
        *(kind if number == 1 else f"{number} {kind}s" for kind, number in side.libraries),
        *([f"{rest} more"] if rest else []),
    ]
    return f"{', '.join(most)} and {last}" if most else last


def evidence_sentence(evidence: Evidence) -> str:
    return EVIDENCE[evidence.kind](evidence.facts)


def evidence_sentences(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(map(evidence_sentence, evidence))


def attention_lost(facts: Facts) -> str:
    work = f"{counted(facts['products'], 'matrix product')} and {counted(facts['other_kernels'], 'other kernel')}"
    return f"The attention kernel {_short(facts['kernel'])} is gone: {work} do its work."


def single_precision(facts: Facts) -> str:
    number = facts["products"]
    before = facts["before"] or "another precision"
    return (
        f"{counted(number, 'matrix product')} {'is' if number == 1 else 'are'} computed in float32, before in {before}."
    )


def epilogue_lost(facts: Facts) -> str:
    beside = facts["kernels_beside"]
    by = (
        ""
        if not beside
        else ": a kernel beside it does that"
        if beside == 1
        else f": {beside} kernels beside it do that"
    )
    return f"The product no longer adds the bias or applies the activation itself{by}."


def other_operator(facts: Facts) -> str:
    return f"The {facts['work']} is asked for by {facts['after']}, before by {facts['before']}."


def inputs_prepared(facts: Facts) -> str:
    more = facts["kernels"]
    return f"{more} more {'kernel prepares' if more == 1 else 'kernels prepare'} inputs or results for it."


def split_along_k(facts: Facts) -> str:
    if facts["is_split"]:
        return "The product is now split along K, and its parts are summed up afterwards."
    return "The product is no longer split along K."


def other_kernel(facts: Facts) -> str:
    return f"Another kernel: {_short(facts['after'])} instead of {_short(facts['before'])}."


def channels_moved_last(_: Facts) -> str:
    return "In memory the channels of what is convolved lay first (NCHW) and lie last (NHWC)."


def attention_asked_otherwise(facts: Facts) -> str:
    return f"Attention is asked for otherwise: {'; '.join(_attention_differences(facts))}."


def _attention_differences(facts: Facts) -> Iterator[str]:
    for name, change in facts.items():
        before, after = change["before"], change["after"]
        if name == "operator":
            yield f"by {after}, before by {before}"
        elif name == "is_causal":
            yield f"is_causal was {before} and is {after}"
        elif name == "mask" and before is None:
            yield f"a mask of {_size(after)} came in"
        elif name == "mask" and after is None:
            yield f"the mask of {_size(before)} is gone"
        else:
            yield f"the {name} was {_size(before)} and is {_size(after)}"


def same_kernel_other_time(facts: Facts) -> str:
    took = f"The same kernel takes {duration(facts['after_us'])} a call instead of {duration(facts['before_us'])}."
    inputs = facts.get("inputs")
    if inputs is None:
        return took
    before, after = (", ".join(map(_size, inputs[side])) for side in ("before", "after"))
    return f"{took} Its inputs were {before} and are {after}."


def _size(dims: Sequence[int]) -> str:
    return "x".join(map(str, dims))


def _short(kernel: str) -> str:
    return short_kernel_name(kernel, LONGEST_NAME)


EVIDENCE: dict[EvidenceKind, Callable[[Facts], str]] = {
    "attention_lost": attention_lost,
    "single_precision": single_precision,
    "epilogue_lost": epilogue_lost,
    "other_operator": other_operator,
    "inputs_prepared": inputs_prepared,
    "split_along_k": split_along_k,
    "other_kernel": other_kernel,
    "channels_moved_last": channels_moved_last,
    "attention_asked_otherwise": attention_asked_otherwise,
    "same_kernel_other_time": same_kernel_other_time,
}
