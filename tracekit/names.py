"""Kernel names as people read them: the C++ ceremony elided, control characters made harmless. And what the names of
operators and of Inductor's templates say."""

import re
import unicodedata
from functools import cache
from typing import Literal

#: The part of a template argument that says what an element-wise kernel computes.
OPERATION = re.compile(r"\b(\w*Functor_\w+|\w+Functor|\w+_kernel_cuda|\w+KernelImpl\w*)\b")

#: The first template argument that is no number.
FIRST_TYPE = re.compile(r"(?:\d\w*,\s*)*(?:\w+::)*([A-Za-z_]\w+)")

#: Halves of UTF-16 pairs: no characters of their own.
SURROGATE = re.compile(r"[\ud800-\udfff]")

#: Triton kernels that Inductor made from a template of a product, an attention or a convolution; their names list the
#: operators.
TEMPLATE = re.compile(r"triton_(?:tem_|(?:b|add|baddb)?mm|convolution|flex|flash)")
#: Operators that multiply matrices, in such a list.
MULTIPLIES = re.compile(r"_(?:(?:b|add|addb|baddb)?mm|matmul|linear|addmv|mv|dot)(?:_|$)")

#: Operators that compute nothing: another view of the same memory, or memory yet to be written.
NO_WORK = frozenset(
    """alias as_strided _reshape_alias chunk detach diagonal empty empty_like empty_strided expand lift_fresh movedim
    narrow new_empty new_empty_strided permute reinterpret_tensor reshape resolve_conj resolve_neg select set_ slice
    split split_with_sizes squeeze swapaxes t to transpose unbind unfold unflatten unsafe_chunk unsafe_split
    unsafe_split_with_sizes unsqueeze view view_as view_as_complex view_as_real _unsafe_view""".split()
)

#: Wrappers around the operation, which say nothing of it.
WRAPPERS = {"BinaryFunctor", "UnaryFunctor", "AUnaryFunctor", "BUnaryFunctor"}


@cache
def plain_name(operator: str) -> str:
    """`aten.add_.Tensor`, `aten::add` and `torch.ops.aten.add.default` are all `add`: without namespace, overload, and
    the underscore of an in-place operator."""
    parts = operator.removeprefix("torch.ops.").replace("::", ".").split(".")
    name = parts[1] if len(parts) > 1 else parts[0]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def is_triton(kernel: str) -> bool:
    """Whether Inductor wrote the kernel in Triton."""
    return kernel.startswith("triton_")


@cache
def template_family(kernel: str) -> Literal["gemm", "attention", "convolution"] | None:
    """What Inductor's template does that the kernel was made from, told by its name; None for what is no template, or
    does not say."""
    if not TEMPLATE.match(kernel):
        return None
    if "attention" in kernel or kernel.startswith(("triton_flex", "triton_flash")):
        return "attention"
    if "_convolution" in kernel:
        return "convolution"
    return "gemm" if MULTIPLIES.search(kernel) else None


def printable(text: str) -> str:
    """The text on one line, without characters that steer a terminal or turn the writing direction."""
    if text.isprintable():
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(each) in ("Cc", "Cf", "Cs") else each for each in text
    )


def encodable(text: str) -> str:
    """The text without lone surrogates, which stand for the bytes of a file's name that are no UTF-8, and which no
    encoding of text has."""
    return SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def clipped_within(text: str, limit: int) -> str:
    """Cut in the middle: what tells runs apart is often at the end."""
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[len(text) - (limit - 1 - limit // 2) :]}"


@cache
def short_kernel_name(name: str, limit: int = 64) -> str:
    """`void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>(int, ...)` is
    `vectorized_elementwise_kernel<CUDAFunctor_add>`. Names that are no C++ signatures are only clipped."""
    name = printable(name)
    # Long names are long for their arguments; what matters comes early.
    head = name[:2000].removeprefix("void ").replace("(anonymous namespace)::", "")
    base, bracket, arguments = head.partition("<")
    if "::" not in base and not (bracket and name.startswith("void ")):
        return clipped(name, limit)
    base = base.partition("(")[0].rpartition("::")[2] or base
    # The operation if a template argument names one, else the first argument if it is a type.
    shown = next((word for word in OPERATION.findall(arguments) if word not in WRAPPERS), None)
    if shown is None:
        first = FIRST_TYPE.match(arguments)
        shown = "…" if first is None or first[1].startswith("gpu_kernel_impl") else first[1]
    return clipped(f"{base}<{shown}>" if bracket else base, limit)
