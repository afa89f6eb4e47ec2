"""What a group of kernels, and a part of the waterfall, is called."""

from __future__ import annotations

from tracekit.model.labels import GroupLabel, KernelCounts, Label

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
