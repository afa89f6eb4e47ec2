"""What shows that a library kernel was exchanged, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tracekit.model.evidence import Evidence, EvidenceKind
from tracekit.names import short_kernel_name
from tracekit.numbers import counted, duration

Facts = dict[str, Any]

#: Characters of a kernel's name that are shown.
LONGEST_NAME = 48


def evidence_sentence(evidence: Evidence) -> str:
    return WORDS[evidence.kind](evidence.facts)


def evidence_sentences(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(map(evidence_sentence, evidence))


def _attention_lost(facts: Facts) -> str:
    work = f"{counted(facts['products'], 'matrix product')} and {counted(facts['other_kernels'], 'other kernel')}"
    return f"The attention kernel {_short(facts['kernel'])} is gone: {work} do its work."


def _single_precision(facts: Facts) -> str:
    number = facts["products"]
    before = facts["before"] or "another precision"
    return (
        f"{counted(number, 'matrix product')} {'is' if number == 1 else 'are'} computed in float32, before in {before}."
    )


def _epilogue_lost(facts: Facts) -> str:
    beside = facts["kernels_beside"]
    by = (
        ""
        if not beside
        else ": a kernel beside it does that"
        if beside == 1
        else f": {beside} kernels beside it do that"
    )
    return f"The product no longer adds the bias or applies the activation itself{by}."


def _other_operator(facts: Facts) -> str:
    return f"The {facts['work']} is asked for by {facts['after']}, before by {facts['before']}."


def _inputs_prepared(facts: Facts) -> str:
    more = facts["kernels"]
    return f"{more} more {'kernel prepares' if more == 1 else 'kernels prepare'} inputs or results for it."


def _split_along_k(facts: Facts) -> str:
    if facts["is_split"]:
        return "The product is now split along K, and its parts are summed up afterwards."
    return "The product is no longer split along K."


def _other_kernel(facts: Facts) -> str:
    return f"Another kernel: {_short(facts['after'])} instead of {_short(facts['before'])}."


def _channels_moved_last(_: Facts) -> str:
    return "In memory the channels of what is convolved lay first (NCHW) and lie last (NHWC)."


def _attention_asked_otherwise(facts: Facts) -> str:
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


def _same_kernel_other_time(facts: Facts) -> str:
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


WORDS: dict[EvidenceKind, Callable[[Facts], str]] = {
    "attention_lost": _attention_lost,
    "single_precision": _single_precision,
    "epilogue_lost": _epilogue_lost,
    "other_operator": _other_operator,
    "inputs_prepared": _inputs_prepared,
    "split_along_k": _split_along_k,
    "other_kernel": _other_kernel,
    "channels_moved_last": _channels_moved_last,
    "attention_asked_otherwise": _attention_asked_otherwise,
    "same_kernel_other_time": _same_kernel_other_time,
}
