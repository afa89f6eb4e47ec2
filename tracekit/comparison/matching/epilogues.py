"""What does a library call do itself to what it has multiplied: does it add to it, does it apply an activation?"""

from __future__ import annotations

from functools import cache

from tracekit.comparison.matching.operators import kind_of_operator, short_name, triton_operators
from tracekit.comparison.matching.units import Unit
from tracekit.model.sequence import Activity

#: How names of kernels say that they add a bias or apply an activation to what they have multiplied, and what that is.
EPILOGUES = {
    "_bias": ("add",),
    "epilogue": ("add", "relu", "gelu"),
    "relu": ("relu",),
    "gelu": ("gelu",),
}
#: Operators of libraries that do more than multiply or convolve, and what at most (torch's native_functions.yaml).
MORE = {
    "addmm": ("add",),
    "addmv": ("add",),
    "addbmm": ("add",),
    "baddbmm": ("add",),
    "_addmm_activation": ("add", "relu", "gelu"),
    "cudnn_convolution_relu": ("relu",),
    "cudnn_convolution_add_relu": ("add", "relu"),
}
NOTHING: frozenset[str] = frozenset()


@cache
def asked_beside(operator: str) -> frozenset[str]:
    """What the operator asks for beside the product or convolution; of one of Inductor's templates, as its name lists
    it."""
    if kind_of_operator(operator) is None:
        return NOTHING
    listed = triton_operators(operator)
    if listed is None:
        return frozenset(MORE.get(short_name(operator), ()))
    named = {word for name, words in MORE.items() if f"_{name}_" in listed for word in words}
    return frozenset((*named, *(word for word in ("add", "relu", "gelu") if f"_{word}_" in listed)))


@cache
def named_beside(kernel: str) -> frozenset[str]:
    """What a library kernel's name says that it does to its product."""
    name = kernel.lower()
    return frozenset(word for part, words in EPILOGUES.items() if part in name for word in words)


def done_beside(unit: Unit) -> frozenset[str]:
    """What a library call may do beside its product; empty for what is no library call."""
    if unit.kind is None:
        return NOTHING
    asked = (asked_beside(name) for name, _ in unit.signature.operators)
    return NOTHING.union(*asked, *map(named_beside, unit.signature.names))


def asks_for_other_work(one: Activity, other: Activity) -> bool:
    """Whether two library kernels were asked for different work beside the product; False where a side does not say."""
    if one.operator is None or other.operator is None:
        return False
    return asked_beside(one.operator.name) != asked_beside(other.operator.name)
