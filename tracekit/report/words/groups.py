"""What a group of kernels, and a part of the waterfall, is called."""

from tracekit.model.groups import GroupLabel, KernelCounts, Label
from tracekit.numbers import count, counted
from tracekit.statements.evidence import work_name

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
ONLY = {"eliminated": ", not in B", "added": ", only in B", "unmatched": ", no match"}


def label_words(label: Label) -> str:
    """`x38: 14 kernels -> 2 Triton (rms_norm, mul, add)`; what is unchanged is called by its kernel's name."""
    if isinstance(label, str):
        return PARTS.get(label, label)
    # A mean per step is rounded; once is not told.
    repeats = "" if label.repeats < 1.5 else f"x{count(label.repeats)}: "
    if label.family is not None:
        how = "not matched by name" if label.kind == "unmatched" else "matched by family only"
        told = f", {WAITING_INCLUDED}" if label.kind == "communication" else f" ({how})"
        return f"{repeats}{FAMILIES[label.family]}{told}"
    sides = " -> ".join(_kernels(side) for side in (label.before, label.after) if side is not None)
    operators = f" ({operators_word(label)})" if label.operators else ""
    return f"{repeats}{sides}{ONLY.get(label.kind, '')}{operators}"


def operators_word(label: GroupLabel) -> str:
    return ", ".join([*label.operators, *(["..."] if label.more_operators else [])])


def _kernels(side: KernelCounts) -> str:
    """`3 kernels, 1 Triton`, `2 matmuls + 1 kernel`, `attention`."""
    noun, written = ("operator", "C++") if side.on_cpu else ("kernel", "Triton")
    if not side.libraries:
        if side.generated == side.count:
            return f"{side.count} {written}"
        told = f"{side.count} {noun}{'' if side.count == 1 else 's'}"
        return f"{told}, {side.generated} {written}" if side.generated else told
    rest = side.count - sum(number for _, number in side.libraries)
    libraries = ((work_name(kind), number) for kind, number in side.libraries)
    named = [kind if number == 1 else f"{number} {kind}s" for kind, number in libraries]
    return " + ".join([*named, *([counted(rest, noun)] if rest else [])])
