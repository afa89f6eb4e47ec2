"""Estimates of operations, bytes and rates, on operators as the profiler records them."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace
from tests.sequences import eager, make_activity, make_sequence, product
from tests.sides import make_analysis, make_side

from tracekit.comparison.comparing import compare
from tracekit.comparison.cost.flops import flops_of
from tracekit.comparison.cost.operator_calls import Call, bytes_of_noted, find_calls, note_calls
from tracekit.comparison.cost.roofline import limits_of, peak_of, rates_of
from tracekit.comparison.cost.traffic import bytes_of
from tracekit.model.provenance import EagerOp, EagerOps, TaggedActivity, TensorShape
from tracekit.model.sequence import Activity, NotedCall, Operator, Peak, Rates

BF16 = "c10::BFloat16"


def op(name: str, *dims: tuple[int, ...], types: str | tuple[str, ...] = BF16) -> Operator:
    dtypes = (types,) * len(dims) if isinstance(types, str) else types
    return Operator(name, dims, dtypes)


def run(name: str, family: str, us: float, operator: Operator | None, call: int | None = None) -> Activity:
    return Activity(name, family, us, operator, call=call, operator_call=call)


def calls_of(activities: Iterable[Activity]) -> tuple[Call, ...]:
    return tuple(find_calls(tuple(activities)).values())


def bytes_of_calls(activities: Iterable[Activity]) -> list[int | None]:
    return [call.bytes for call in calls_of(activities)]


def rates_of_one(activity: Activity, peak: Peak | None) -> Rates:
    return rates_of([Call((activity,))], peak)


LARGE = op("aten::mm", (4096, 4096), (4096, 4096))
DECODING = op("aten::mm", (1, 4096), (4096, 4096))
H200 = peak_of("NVIDIA H200")


@pytest.mark.parametrize(
    ("operator", "flops"),
    [
        # As Inductor calls it, with the result as an argument.
        (op("aten::addmm", (3072,), (1, 256), (256, 3072), (), (), (1, 3072)), 2 * 256 * 3072),
        (op("aten::mm", (197, 768), (3072, 768)), None),
        (op("aten::mm"), None),
        (op("aten::_cudnn_attention_forward", *[(1, 24, 1536, 128)] * 3), 4 * 24 * 1536 * 1536 * 128),
        # Sequences of different lengths in one: the sizes do not say where each ends.
        (op("aten::_flash_attention_forward", *[(4096, 24, 128)] * 3), None),
        (op("aten::linear", (2, 7, 8), (5, 9)), None),
        # Stride and padding were not recorded.
        (op("aten::cudnn_convolution", (1, 3, 224, 224), (768, 3, 16, 16)), None),
        (op("aten::add", (10,), (10,)), None),
    ],
)
def test_operations_follow_from_the_recorded_sizes(operator: Operator, flops: int | None) -> None:
    assert flops_of(operator) == flops


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
        (op("aten::linear", (4, 8), (2, 8), (2,)), 2 * (32 + 16 + 2 + 8)),
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


#: Of (1, 8, 16, 4): dense, and of one head for all.
DENSE, ONE_HEAD = (512, 64, 4, 1), (64, 0, 4, 1)
QUERIES = ((1, 8, 16, 4),) * 3


@pytest.mark.parametrize(
    ("operator", "strides", "size"),
    [
        (op("aten::mul", (4, 8), (4, 8)), ((8, 1), (0, 1)), 64 + 16 + 64),
        (op("aten::copy_", (4, 8), (4, 8)), ((8, 1), (0, 0)), 64 + 2),
        (op("aten::_softmax", (4, 8)), ((1, 0),), 8 + 64),
        (op("triton_poi_fused_add_0", (4, 8), (4, 8)), ((8, 1), (8, 0)), 64 + 8),
        # Keys and values of grouped-query attention; what is written is repeated nowhere.
        (op("aten::_cudnn_attention_forward", *QUERIES), (DENSE, ONE_HEAD, ONE_HEAD), (512 + 64 + 64 + 512) * 2),
        (
            op("aten::_scaled_dot_product_flash_attention_backward", (1, 8, 16, 4), *QUERIES),
            (DENSE, DENSE, ONE_HEAD, ONE_HEAD),
            (512 + 64 + 64 + 3 * 512 + 2 * 512) * 2,
        ),
        # Of nothing nothing is repeated; strides of other inputs say nothing.
        (op("aten::mul", (0, 8), (0, 8)), ((0, 1), (0, 1)), 0),
        (op("aten::mul", (4, 8), (4, 8)), ((8, 1), (0,)), 3 * 64),
    ],
)
def test_what_is_repeated_counts_as_large_as_it_is_in_memory(operator: Operator, strides, size: int) -> None:
    assert bytes_of(replace(operator, strides=strides)) == size


PRODUCT = op("aten::mm", (4, 8), (8, 2))
NORM = op("aten::native_group_norm", (2, 8, 16), (8,), (8,))


def test_what_one_call_launches_counts_once_and_the_same_call_again_is_another() -> None:
    names = {"Memset (Device)": "memset", "nvjet_splitK_TNN": "gemm", "cublasLt::splitKreduce_kernel": "gemm"}
    parts = [run(name, family, 1, PRODUCT, 7) for name, family in names.items()]
    assert bytes_of_calls(parts) == [112]
    assert bytes_of_calls([*parts, *(replace(each, operator_call=8) for each in parts)]) == [112, 112]
    # Neither a product nor attention: mean and deviation, then the normalization.
    norm = [run("RowwiseMomentsCUDAKernel", "normalization", 1, NORM, 3), run("vectorized", "pointwise", 1, NORM, 3)]
    assert bytes_of_calls(norm) == [2 * (256 + 8 + 8 + 256)]
    # Of a call that nothing is known of, too, there is one.
    assert bytes_of_calls(replace(each, operator=op("aten::strange", (4,))) for each in norm) == [None]


def test_a_call_stands_at_its_library_kernel_else_at_its_longest() -> None:
    parts = [run("Memset (Device)", "memset", 9, PRODUCT, 7), run("nvjet_splitK_TNN", "gemm", 1, PRODUCT, 7)]
    norm = [run("vectorized", "pointwise", 1, NORM, 3), run("moments", "normalization", 2, NORM, 3)]
    other = run("add", "pointwise", 1, NORM, 4)
    # What belongs together does not always follow one another.
    assert list(find_calls([*parts, norm[0], other, norm[1]])) == [1, 4, 3]


def test_a_repeated_step_holds_each_call_again() -> None:
    step = (run("a", "pointwise", 1, NORM, 1), run("b", "pointwise", 2, NORM, 1), run("c", "pointwise", 1, NORM, 2))
    assert list(find_calls(step * 2)) == [1, 2, 4, 5]


def test_rates_are_the_mean_of_calls_alike_and_are_not_known_if_one_is_not() -> None:
    alike = [Call((run("nvjet", "gemm", us, op("aten::mm", (m, 8), (8, 2))),)) for m, us in ((4, 1), (8, 3))]
    rates = rates_of(alike, None)
    assert rates.flops == (128 + 256) / 2
    assert rates.tflop_per_s == pytest.approx((128 + 256) / 4 / 1e6)
    assert rates_of([*alike, Call((run("nvjet", "gemm", 1, None),))], None).flops is None


def test_what_torch_noted_comes_before_what_sizes_say() -> None:
    (call,) = calls_of([replace(run("nvjet", "gemm", 1, PRODUCT), noted=NotedCall(1000, 500, (4, 2)))])
    assert (call.bytes, call.flops) == (1000, 500)
    (call,) = calls_of([replace(run("nvjet", "gemm", 1, PRODUCT), noted=NotedCall(None, None, (4, 2)))])
    assert (call.bytes, call.flops) == (112, 128)
    picked = op("aten::index_select", (100, 8), (), (5,), types=(BF16, "", "long int"))
    (call,) = calls_of([replace(run("gather", "copy", 1, picked), noted=NotedCall(None, None, (5, 8)))])
    assert call.bytes == 40 + 2 * 5 * 8 * 2


def test_rates_stand_beside_the_published_peak() -> None:
    operator = op("aten::add", (1024, 3072), (1024, 3072))
    rates = rates_of_one(run("vectorized", "pointwise", 6.0, operator), H200)
    assert rates.bytes == 3 * 1024 * 3072 * 2
    assert (rates.gb_per_s, rates.bandwidth_share) == pytest.approx((3145.728, 3145.728 / 4800))
    # More than the memory can do: it was in the cache, or not all of it was touched.
    assert rates_of_one(run("vectorized", "pointwise", 3.0, operator), H200).bytes is None
    product = run("nvjet", "gemm", 100.0, LARGE)
    rates, reached = rates_of_one(product, H200), 2 * 4096**3 / 1e8
    assert (rates.tflop_per_s, rates.arithmetic_share) == pytest.approx((reached, reached / 989.5))
    assert rates_of_one(product, None).arithmetic_share is None
    # By the main kernel of the call, in the mean of all calls.
    assert (rates.limit, rates_of_one(product, None).limit) == ("compute", None)
    small = op("aten::mm", (197, 768), (768, 768))
    calls = [Call((run("Memset (Device)", "memset", 1, small), run("nvjet", "gemm", us, small))) for us in (4, 30)]
    assert [rates_of(some, H200).limit for some in (calls, calls[1:])] == ["small", "neither"]
    assert rates_of_one(run("nvjet", "gemm", 1.0, None), H200).bytes is None


@pytest.mark.parametrize(
    ("activity", "peak", "limit"),
    [
        (run("nvjet", "gemm", 1, LARGE), H200, "compute"),
        (run("nvjet", "gemm", 1, DECODING), H200, "memory"),
        (run("nvjet", "gemm", 1, None), H200, None),
        (run("nvjet", "gemm", 1, LARGE), None, None),
        (run("vectorized", "pointwise", 1, None), None, "memory"),
        (run("triton_red_fused_1", "triton", 1, None), None, "memory"),
        (run("triton_tem_fused_mm_1", "gemm", 1, None), H200, None),
        (run("Memcpy HtoD", "memcpy", 1, None), None, "copy"),
        # Far from both limits, where they take 138.9 and 7.0 us, a product is held back by its kernel.
        (run("nvjet", "gemm", 2770, LARGE), H200, "compute"),
        (run("nvjet", "gemm", 2790, LARGE), H200, "neither"),
        (run("nvjet", "gemm", 139, DECODING), H200, "memory"),
        (run("nvjet", "gemm", 141, DECODING), H200, "neither"),
        # Below 20 us and 30 % of both limits it is too small to fill the GPU: 7.0 us are 30 % of 23.3.
        (run("nvjet", "gemm", 19, op("aten::mm", (1, 8), (8, 8))), H200, "small"),
        (run("nvjet", "gemm", 19, DECODING), H200, "memory"),
        (run("nvjet", "gemm", 5, op("aten::mm", (197, 768), (768, 768))), H200, "small"),
        (run("vectorized", "pointwise", 2.2, op("aten::add", (197, 768), (197, 768))), H200, "small"),
        (run("vectorized", "pointwise", 0.6, op("aten::add", (197, 768), (197, 768))), H200, "memory"),
        (run("triton_poi_fused_add_0", "triton", 2, op("triton_poi_fused_add_0", (8,), (8,))), H200, "small"),
        # Nobody knows what the device could do, or how much it was.
        (run("vectorized", "pointwise", 2, op("aten::add", (8,), (8,))), None, "memory"),
        (run("vectorized", "pointwise", 2, op("aten::strange", (8,))), H200, "memory"),
        (run("nvjet", "gemm", 20, op("aten::mm", (1, 8), (8, 8))), H200, "neither"),
        # What moves memory is limited by it whatever it reaches.
        (run("vectorized", "pointwise", 900, op("aten::add", (8,), (8,))), H200, "memory"),
    ],
)
def test_the_limit_of_a_product_depends_on_its_size(activity, peak, limit) -> None:
    assert list(limits_of([activity], peak)) == [limit]


SINGLE = op("aten::mm", (4096, 4096), (4096, 4096), types="float")
ATTENDING = op("aten::_scaled_dot_product_efficient_attention", *[(1, 8, 512, 64)] * 3, types="float")


@pytest.mark.parametrize(
    ("operator", "name", "precision", "peak_tflop_per_s"),
    [
        (SINGLE, "ampere_sgemm_128x64_tn", "high", 67),
        (SINGLE, "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1::Params)", None, 67),
        (SINGLE, "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", None, 494.5),
        (SINGLE, "cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>", "highest", 494.5),
        (SINGLE, "nvjet_sss_128x256_32x4_2x1_v_bz_coopB_NNN", None, 494.5),
        # The name does not tell, the setting does, of products alone.
        (SINGLE, "triton_tem_fused_mm_0", "highest", 67),
        (SINGLE, "triton_tem_fused_mm_0", "high", 494.5),
        (SINGLE, "triton_tem_fused_mm_0", None, None),
        (ATTENDING, "fmha_cutlassF_f32_aligned_64x64_rf_sm80", "highest", None),
    ],
)
def test_single_precision_meets_the_peak_of_the_units_it_uses(operator, name, precision, peak_tflop_per_s) -> None:
    rates = rates_of_one(run(name, "gemm", 1e4, operator), replace(H200, float32_precision=precision))
    share = rates.tflop_per_s / peak_tflop_per_s if peak_tflop_per_s else None
    assert rates.arithmetic_share == (pytest.approx(share) if share else None)


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
        ("Tesla V100-SXM2-16GB", 900),
        ("AMD Instinct MI300X", 5300),
        # Others, of which none is known.
        (None, None),
        ("", None),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
    ],
)
def test_devices_are_known_by_the_names_their_drivers_give_them(name: str | None, gb_per_s: float | None) -> None:
    peak = peak_of(name)
    assert (peak and peak.gb_per_s) == gb_per_s


SHAPE = TensorShape((4, 8), "bfloat16")


def eager_op(name: str, bytes_: int, flops: int | None = None, *outputs: TensorShape) -> EagerOp:
    return EagerOp(name, "block", "model.py:7", outputs or (SHAPE,), bytes_, flops)


def noted(
    activities: list[Activity], ops: list[EagerOp], launched: list[int | None], per_step: float = 1
) -> tuple[Activity, ...]:
    """`launched` are the operators of the activities of one step."""
    tagged = tuple(TaggedActivity(each.name, at) for each, at in zip(activities, launched, strict=False))
    side = replace(make_side(), sequence=make_sequence(activities, per_step=per_step))
    return note_calls(replace(side, provenance=EagerOps(1, "2.11", tuple(ops), tagged))).sequence.activities


def test_without_provenance_or_an_operator_nothing_is_noted() -> None:
    side = replace(make_side(), sequence=make_sequence([product(4, 8, 8, call=1)]))
    assert note_calls(side) is side
    assert note_calls(make_side()).sequence is None
    (copy,) = noted([Activity("Memcpy HtoD", "memcpy", 1, None)], [], [None])
    assert (copy.noted, copy.operator_call) == (None, None)


def test_an_operator_that_runs_others_gives_its_operations_to_the_product_and_its_bytes_to_none() -> None:
    within, dims = "conv2d>cudnn_convolution", ((1, 3, 8, 8), (4, 3, 3, 3))
    convolving = make_activity("sm80_xmma_fprop", "convolution", within, dims, 5)
    adding = replace(eager("add_", (1, 4, 6, 6), (1, 4, 1, 1), call=5), operator_call=6)
    asked = eager_op("aten.convolution.default", 10_000, 7776, TensorShape((1, 4, 6, 6), "bfloat16"))
    convolution, addition = calls_of(noted([convolving, adding], [asked], [0, 0]))
    assert (convolution.flops, convolution.bytes) == (7776, 2 * (3 * 64 + 4 * 27 + 4 * 36))
    assert (addition.flops, addition.bytes) == (None, 2 * (2 * 4 * 36 + 4))


def test_operations_of_an_operator_that_runs_two_products_are_given_to_neither() -> None:
    two = [product(4, 8, 8, call=at) for at in (1, 2)]
    for call in calls_of(noted(two, [eager_op("mine.qkv.default", 999, 777)], [0, 0])):
        assert (call.flops, call.noted) == (2 * 4 * 8 * 8, None)


def test_a_comparison_counts_what_was_noted() -> None:
    cat = eager("cat", call=0)
    analysis = make_analysis({cat.name: ("pointwise", 1, cat.duration_us)}, steps=1)
    a = replace(make_side("a", analysis), sequence=make_sequence([cat]))
    asked = EagerOps(1, "2.11", (eager_op("aten.cat.default", 384),), (TaggedActivity(cat.name, 0),))
    (group,) = compare(replace(a, provenance=asked), replace(a, label="b")).groups
    assert (group.traffic.eager_bytes, group.traffic.compiled_missing) == (384, 1)


def test_what_a_recording_without_operators_holds_of_one_operator_is_one_call_in_each_step() -> None:
    kernels = [Activity(name, "normalization", 1, None) for name in ("moments", "normalize", "normalize")]
    ops = [eager_op("aten.native_group_norm.default", 300), eager_op("aten.relu.default", 128)]
    assert bytes_of_calls(noted(kernels, ops, [0, 0, 1])) == [300, 128]
    kernels = [Activity("add", "pointwise", us, None) for us in (1, 2, 3)]
    ops = [eager_op("aten.add.Tensor", 300 + at) for at in range(3)]
    assert bytes_of_calls(noted(kernels * 2, ops, [0, 1, 2], per_step=0.5)) == [300, 301, 302] * 2


@pytest.mark.parametrize(
    ("noted_op", "expected"),
    [
        (eager_op("aten.add.Tensor", 192), 192),
        # Read and written: it is among the arguments and among the results.
        (eager_op("aten.add_.Tensor", 192), 192),
        # Overwritten: the same, but it was not read.
        (eager_op("aten.copy_.default", 192), 128),
        (eager_op("aten.fill_.Scalar", 128), 64),
        (eager_op("aten.add.out", 256), 192),
        # Some rows of a tensor, as many as there are places.
        (eager_op("aten.embedding.default", 10_000), None),
        (eager_op("aten.index.Tensor", 10_000), None),
        (eager_op("aten.scatter_add_.default", 10_000), None),
        # What it writes it does not return.
        (EagerOp("aten._foreach_add_.List", "", None, (), 400, None), None),
        (eager_op("aten.mul.Tensor", 192, None, TensorShape((4,), "float4_e2m1fn_x2")), None),
        (eager_op("aten.mul.Tensor", 192, None, TensorShape((4, None), "float32")), None),
    ],
)
def test_bytes_are_those_read_and_written(noted_op: EagerOp, expected: int | None) -> None:
    assert bytes_of_noted(noted_op) == expected
