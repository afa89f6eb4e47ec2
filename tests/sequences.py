"""Sequences of GPU activities made by hand: eager operators and the kernels that Inductor makes of them."""

from collections.abc import Iterable
from typing import Any

from tracekit.model.sequence import Activity, Operator, OperatorSource, Sequence

Dims = tuple[tuple[int, ...], ...]

BF16 = "c10::BFloat16"


def make_activity(
    name: str, family: str, within: str, dims: Dims, call: int, us: float = 10.0, dtype: str = BF16
) -> Activity:
    """`within` are names of operators from the outermost to the innermost, without `aten::`."""
    names = (
        tuple(each if each.startswith("triton_") else f"aten::{each}" for each in within.split(">")) if within else ()
    )
    operator = Operator(names[-1], dims, tuple(dtype for _ in dims)) if names else None
    number = call if names else None
    return Activity(name, family, us, operator, names, number, number)


def eager(within: str, *dims: tuple[int, ...], call: int, us: float = 10.0) -> Activity:
    """An element-wise kernel of an eager operator."""
    return make_activity(f"void at::native::{within}_kernel", "pointwise", within, dims, call, us)


def product(m: int, n: int, k: int, *, call: int, within: str = "linear>addmm", kernel: str = "nvjet_bias") -> Activity:
    return make_activity(kernel, "gemm", within, ((n,), (m, k), (k, n)), call, 50.0)


def batched(batch: int, m: int, n: int, k: int, *, call: int) -> Activity:
    return make_activity("sgemm_f32", "gemm", "bmm", ((batch, m, k), (batch, k, n)), call, 60.0, dtype="float")


def attention(heads: int, length: int, width: int, *, call: int) -> Activity:
    shape = (1, heads, length, width)
    return make_activity("flash_fprop", "attention", "_scaled_dot_product_cudnn_attention", (shape,) * 3, call, 30.0)


def triton(operators: str, *dims: tuple[int, ...], call: int, number: int = 0, us: float = 12.0) -> Activity:
    name = f"triton_poi_fused_{operators}_{number}"
    return make_activity(name, "triton", name, dims, call, us)


def make_sequence(activities: Iterable[Activity], operators: OperatorSource = "own", **changes: Any) -> Sequence:
    return Sequence(tuple(activities), changes.get("per_step", 1.0), operators)
