"""Estimates of operations, bytes and rates, on operators as the profiler records them."""

from __future__ import annotations

import pytest

from tracekit.comparison.flops import flops_of
from tracekit.comparison.peaks import peak_of
from tracekit.comparison.roofline import limit_of, rates_of
from tracekit.comparison.traffic import bytes_of, traffic_of
from tracekit.model.sequence import Activity, Operator

BF16 = "c10::BFloat16"


def op(name: str, *dims: tuple[int, ...], types: str | tuple[str, ...] = BF16) -> Operator:
    dtypes = (types,) * len(dims) if isinstance(types, str) else types
    return Operator(name, dims, dtypes)


def run(name: str, family: str, us: float, operator: Operator | None) -> Activity:
    return Activity(name, family, us, operator)


@pytest.mark.parametrize(
    ("operator", "flops"),
    [
        (op("aten::mm", (197, 768), (768, 3072)), 2 * 197 * 768 * 3072),
        # As Inductor calls it, with the result as an argument.
        (op("aten::addmm", (3072,), (1, 256), (256, 3072), (), (), (1, 3072)), 2 * 256 * 3072),
        (op("aten::bmm", (12, 197, 64), (12, 64, 197)), 2 * 12 * 197 * 64 * 197),
        (op("aten::mm", (197, 768), (3072, 768)), None),
        (op("aten::mm"), None),
        (op("aten::_flash_attention_forward", *[(1, 1536, 24, 128)] * 3), 4 * 24 * 1536 * 1536 * 128),
        (op("aten::_cudnn_attention_forward", *[(1, 24, 1536, 128)] * 3), 4 * 24 * 1536 * 1536 * 128),
        # Sequences of different lengths in one: the sizes do not say where each ends.
        (op("aten::_flash_attention_forward", *[(4096, 24, 128)] * 3), None),
        (op("aten::cudnn_convolution", (1, 3, 224, 224), (768, 3, 16, 16)), None),
        (op("aten::add", (10,), (10,)), None),
    ],
)
def test_operations_follow_from_the_recorded_sizes(operator: Operator, flops: int | None) -> None:
    assert flops_of(operator) == flops


def test_a_convolution_needs_the_size_of_its_result() -> None:
    convolution = op("aten::cudnn_convolution", (1, 3, 224, 224), (768, 3, 16, 16))
    assert flops_of(convolution, output=(1, 768, 14, 14)) == 2 * 14 * 14 * 768 * 3 * 16 * 16


@pytest.mark.parametrize(
    ("operator", "size"),
    [
        (op("aten::add", (4, 8), (4, 8)), 3 * 64),
        # Broadcast: the small input is small.
        (op("aten::mul", (4, 8), (8,)), 64 + 16 + 64),
        (op("aten::mul", (4, 1), (1, 8)), 8 + 16 + 64),
        (op("aten::add_", (4, 8), (4, 8)), 3 * 64),
        (op("aten::mul", (4, 8), (4, 8), types=(BF16, "float")), 64 + 128 + 128),
        (op("aten::gt", (4, 8), (4, 8)), 64 + 64 + 32),
        (op("aten::where", (4, 8), (4, 8), (4, 8), types=("bool", BF16, BF16)), 32 + 3 * 64),
        (op("aten::silu", (4, 8)), 128),
        # A scalar is no tensor.
        (op("aten::add", (4, 8), (), (), types=(BF16, "Scalar", "Scalar")), 128),
        # What stands behind the inputs is the result.
        (op("aten::silu", (4, 8), (4, 8)), 128),
        (op("aten::copy_", (4, 8), (4, 8), (), types=("float", BF16, "Scalar")), 128 + 64),
        (op("aten::fill_", (4, 8), ()), 64),
        (op("aten::native_layer_norm", (4, 8), (), (8,), (8,)), 64 + 16 + 16 + 64),
        (op("aten::_softmax", (4, 8), (), ()), 128),
        (op("aten::mean", (4, 8), ()), 64),
        (op("aten::embedding", (1000, 8), (5,), types=(BF16, "long int")), 40 + 2 * 5 * 8 * 2),
        (op("aten::mm", (4, 8), (8, 2)), 2 * (32 + 16 + 8)),
        (op("aten::addmm", (2,), (4, 8), (8, 2), (), (), (4, 2)), 2 * (2 + 32 + 16 + 8)),
        (op("aten::_cudnn_attention_forward", *[(1, 2, 16, 4)] * 3), 4 * 2 * 16 * 4 * 2),
        (
            op("triton_poi_fused_add_0", (4, 8), (4, 8), (4, 8), (), types=(BF16, BF16, "float", "Scalar")),
            64 + 64 + 128,
        ),
        # Not recorded, not known, or not a size that fits.
        (op("aten::add"), None),
        (op("aten::cat", (), ()), None),
        (op("aten::some_kernel", (4, 8)), None),
        (op("aten::add", (4, 8), (3, 8)), None),
        (op("aten::add", (4, 8), (4, 8), types="c10::Strange"), None),
    ],
)
def test_bytes_follow_from_the_recorded_sizes_and_types(operator: Operator, size: int | None) -> None:
    assert bytes_of(operator) == size


def test_fusing_saves_what_the_operators_between_wrote_and_read() -> None:
    eager = [
        run("add", "pointwise", 3, op("aten::add", (1024, 1024), (1024, 1024))),
        run("silu", "pointwise", 3, op("aten::silu", (1024, 1024))),
    ]
    fused = op(
        "triton_poi_fused_add_silu_0", (1024, 1024), (1024, 1024), (1024, 1024), (), types=(BF16, BF16, BF16, "")
    )
    compiled = [run("triton_poi_fused_add_silu_0", "triton", 3, fused)]
    traffic = traffic_of(eager, compiled)
    assert (traffic.eager_bytes, traffic.compiled_bytes) == (5 * 2**21, 3 * 2**21)
    assert traffic.removed_bytes == 2 * 2**21


def test_what_cannot_be_derived_is_counted_and_nothing_is_said_to_be_removed() -> None:
    eager = [
        run("add", "pointwise", 3, op("aten::add", (4, 8), (4, 8))),
        run("cat", "copy", 3, op("aten::cat", (), ())),
    ]
    traffic = traffic_of(eager, [run("triton_poi_0", "triton", 1, None)])
    assert (traffic.eager_bytes, traffic.eager_missing) == (192, 1)
    assert (traffic.compiled_bytes, traffic.compiled_missing) == (None, 1)
    assert traffic.removed_bytes is None


def test_a_product_in_parts_is_one_call_and_the_same_product_again_is_another() -> None:
    product = op("aten::mm", (4, 8), (8, 2))
    parts = [
        run("Memset (Device)", "memset", 1, product),
        run("nvjet_splitK_TNN", "gemm", 1, product),
        run("cublasLt::splitKreduce_kernel", "gemm", 1, product),
    ]
    assert traffic_of(parts, []).eager_bytes == 112
    assert traffic_of([parts[1], parts[1]], []).eager_bytes == 224


def test_rates_stand_beside_the_published_peak() -> None:
    peak = peak_of("NVIDIA H200")
    operator = op("aten::add", (1024, 3072), (1024, 3072))
    rates = rates_of(run("vectorized", "pointwise", 6.0, operator), peak)
    assert rates.bytes == 3 * 1024 * 3072 * 2
    assert rates.gb_per_s == pytest.approx(3145.728)
    assert rates.bandwidth_share == pytest.approx(3145.728 / 4800)
    # More than the memory can do: it was in the cache, or not all of it was touched.
    assert rates_of(run("vectorized", "pointwise", 3.0, operator), peak).bytes is None
    product = run("nvjet", "gemm", 100.0, op("aten::mm", (4096, 4096), (4096, 4096)))
    assert rates_of(product, peak).tflop_per_s == pytest.approx(2 * 4096**3 / 1e8)
    assert rates_of(product, peak).arithmetic_share == pytest.approx(2 * 4096**3 / 1e8 / 989.5)
    assert rates_of(product, None).arithmetic_share is None
    assert rates_of(run("nvjet", "gemm", 1.0, None), peak).bytes is None


def test_the_limit_of_a_product_depends_on_its_size() -> None:
    peak = peak_of("NVIDIA H200")
    large = op("aten::mm", (4096, 4096), (4096, 4096))
    decoding = op("aten::mm", (1, 4096), (4096, 4096))
    assert limit_of(run("nvjet", "gemm", 1, large), peak) == "compute"
    assert limit_of(run("nvjet", "gemm", 1, decoding), peak) == "memory"
    assert limit_of(run("nvjet", "gemm", 1, None), peak) is None
    assert limit_of(run("nvjet", "gemm", 1, large), None) is None
    assert limit_of(run("vectorized", "pointwise", 1, None), None) == "memory"
    assert limit_of(run("triton_red_fused_1", "triton", 1, None), None) == "memory"
    assert limit_of(run("triton_tem_fused_mm_1", "triton", 1, None), peak) is None
    assert limit_of(run("Memcpy HtoD", "memcpy", 1, None), None) == "copy"


def test_products_in_single_precision_meet_the_peak_of_the_units_they_use() -> None:
    peak = peak_of("NVIDIA H200")
    product = op("aten::mm", (4096, 4096), (4096, 4096), types="float")
    exact, short = (rates_of(run(name, "gemm", 1e4, product), peak) for name in ("sgemm", "xmma_gemm_tf32f32"))
    assert exact.arithmetic_share is not None
    assert short.arithmetic_share is not None
    assert exact.arithmetic_share / short.arithmetic_share == pytest.approx(494.5 / 67)


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [
        ("NVIDIA H200", 4800),
        ("NVIDIA H100 80GB HBM3", 3350),
        ("NVIDIA H100 PCIe", 2000),
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100 80GB PCIe", 1935),
        ("NVIDIA L40S", 864),
        ("NVIDIA L4", 300),
        ("NVIDIA A10G", 600),
        ("Tesla T4", 320),
        ("Tesla V100-SXM2-16GB", 900),
        ("NVIDIA GeForce RTX 4090", 1008),
        ("NVIDIA B200", 8000),
        ("AMD Instinct MI300X", 5300),
    ],
)
def test_devices_are_known_by_the_names_their_drivers_give_them(name: str, gb_per_s: float) -> None:
    peak = peak_of(name)
    assert peak is not None
    assert peak.gb_per_s == gb_per_s


@pytest.mark.parametrize(
    "name", [None, "", "NVIDIA GH200 480GB", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA GeForce RTX 4090 Laptop GPU"]
)
def test_an_unknown_device_has_no_peak(name: str | None) -> None:
    assert peak_of(name) is None


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("mm", [(6, 8), (8, 3)]),
        ("addmm", [(3,), (6, 8), (8, 3)]),
        ("bmm", [(2, 6, 8), (2, 8, 3)]),
        ("baddbmm", [(2, 6, 3), (2, 6, 8), (2, 8, 3)]),
        ("_scaled_dot_product_flash_attention", [(2, 4, 16, 8), (2, 4, 32, 8), (2, 4, 32, 8)]),
        ("_scaled_dot_product_efficient_attention", [(2, 4, 16, 8), (2, 4, 32, 8), (2, 4, 32, 8)]),
        ("_scaled_dot_product_flash_attention_backward", [(2, 4, 16, 8)] * 4),
        ("cudnn_convolution", [(2, 3, 16, 16), (5, 3, 3, 3)]),
    ],
)
def test_operations_are_those_that_torch_counts(name: str, shapes: list[tuple[int, ...]]) -> None:
    flop_counter = pytest.importorskip("torch.utils.flop_counter")
    import torch

    formula = flop_counter.flop_registry[getattr(torch.ops.aten, name)]
    tensors = [torch.empty(shape, device="meta") for shape in shapes]
    output = None
    if name == "cudnn_convolution":
        output = (2, 5, 14, 14)
        result = torch.empty(output, device="meta")
        counted = formula(*tensors, None, 1, 0, 1, False, out_val=result)
    elif name.endswith("_backward"):
        # grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k
        counted = formula(*tensors, None, None, None, None, 0, 0)
    else:
        counted = formula(*tensors)
    assert flops_of(op(f"aten::{name}", *shapes), output) == counted
