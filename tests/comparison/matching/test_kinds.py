from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sequences import attention, batched, eager, make_activity, product, triton

from tracekit.comparison.matching.inputs import Masking, masking_of, same_inputs
from tracekit.comparison.matching.kinds import find_evidence, kind_of, without_same
from tracekit.comparison.matching.labels import label_of, sizes_of
from tracekit.comparison.matching.operators import kernel_epilogue, operator_epilogue, plain_name
from tracekit.model.groups import Evidence, GroupLabel, KernelCounts
from tracekit.model.sequence import Activity, Operator

GEMM = product(64, 64, 64, call=0)
OTHER_GEMM = replace(GEMM, name="cutlass_gemm")
GELU = eager("gelu", (64, 64), call=1)
FUSED_GELU = triton("gelu", (64, 64), call=1)
TEMPLATE = make_activity("triton_tem_fused_addmm_3", "triton", "triton_tem_fused_addmm_3", ((64, 64),) * 3, 0)
FLASH = attention(8, 16, 32, call=0)
BMM = batched(8, 16, 16, 32, call=0)


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ([GEMM], [GEMM], "unchanged"),
        ([GEMM, GELU], [GELU, GEMM], "unchanged"),
        ([GEMM], [], "eliminated"),
        ([], [GEMM], "added"),
        # The library kernel is the same on both sides: what stands beside it decides.
        ([GEMM, GELU], [GEMM, FUSED_GELU], "fused"),
        ([GEMM, GELU, GELU], [GEMM, FUSED_GELU], "fused"),
        ([GEMM, GELU], [GEMM], "fused"),
        ([FLASH], [FUSED_GELU, FLASH], "defused"),
        # One for one: Inductor's kernel in place of PyTorch's, or another one of PyTorch's own.
        ([GELU], [FUSED_GELU], "fused"),
        ([GELU], [replace(GELU, name="vectorized_gelu")], "substituted"),
        ([GELU], [FUSED_GELU, FUSED_GELU], "defused"),
        ([GEMM], [FUSED_GELU], "fused"),
        ([GEMM], [FUSED_GELU, FUSED_GELU], "defused"),
        ([GELU], [TEMPLATE], "substituted"),
        # A library kernel became another one, or a template.
        ([GEMM], [OTHER_GEMM], "substituted"),
        ([GEMM, GELU], [OTHER_GEMM], "substituted"),
        ([GEMM], [TEMPLATE], "substituted"),
        ([GEMM], [replace(GEMM, name="gemm_splitK"), replace(GEMM, name="splitKreduce_kernel")], "substituted"),
        ([FLASH], [BMM, FUSED_GELU, BMM], "defused"),
        ([BMM, GELU, BMM], [FLASH], "fused"),
    ],
)
def test_what_became_of_kernels(a: list[Activity], b: list[Activity], kind: str) -> None:
    assert kind_of(a, b) == kind


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (product(64, 64, 128, call=0), "substituted"),
        (replace(GEMM, operator=replace(GEMM.operator, dtypes=("float",) * 3)), "substituted"),  # type: ignore[type-var]
        (replace(GEMM, operator=None), "unchanged"),
        (replace(GEMM, operator=replace(GEMM.operator, dims=(), dtypes=())), "unchanged"),  # type: ignore[type-var]
    ],
)
def test_a_kernel_on_other_sizes_or_types_is_not_unchanged_where_both_sides_know_them(
    other: Activity, kind: str
) -> None:
    assert kind_of([GEMM], [other]) == kind


def test_other_kernels_on_other_sizes_are_not_unchanged_either() -> None:
    assert kind_of([GELU], [eager("gelu", (64, 128), call=1)]) == "substituted"
    assert kind_of([GELU], [eager("gelu", (1, 64, 64), call=1)]) == "unchanged"
    # The number in a Triton kernel's name says nothing, its inputs do.
    one, seven = (triton("add_mul", (64,), call=0, number=number) for number in (1, 7))
    assert kind_of([one], [seven]) == "unchanged"
    assert kind_of([one], [triton("add_mul", (65,), call=0)]) == "fused"


def test_equal_kernels_are_taken_away_one_for_one() -> None:
    assert without_same([GELU, GEMM, GELU], [GELU, FUSED_GELU]) == ([GEMM, GELU], [FUSED_GELU])


def test_where_the_result_is_written_to_is_no_other_input() -> None:
    mm = Operator("aten::mm", ((4, 8), (8, 2)), ("float", "float"))
    assert same_inputs(mm, replace(mm, dims=(*mm.dims, (4, 2)), dtypes=("float",) * 3))
    assert not same_inputs(mm, replace(mm, dims=((4, 8), (8, 3)), dtypes=("float",) * 2))
    assert not same_inputs(mm, replace(mm, dims=(*mm.dims, (4, 2), (4, 2)), dtypes=("float",) * 4))


def test_spellings_of_one_product_are_told_by_the_size_of_the_work() -> None:
    mm = Operator("aten::mm", ((4, 8), (8, 2)), ("float", "float"))
    addmm = Operator("aten::addmm", ((2,), (4, 8), (8, 2)), ("float",) * 3)
    assert same_inputs(mm, addmm)
    assert not same_inputs(mm, replace(addmm, dtypes=("c10::Half",) * 3))


CUDNN = "aten::_cudnn_attention_forward"
HEADS = ((1, 8, 512, 256),) * 3


def cudnn(*, causal: str = "True", mask: tuple[int, ...] = (), values: bool = True) -> Operator:
    dims = (*HEADS, mask, *((),) * 9)
    return Operator(
        CUDNN, dims, ("bf16",) * 13, ("", "", "", "", "", "", "512", "512", "False", "0.", causal) if values else ()
    )


def test_attention_tells_its_mask_and_whether_it_is_causal() -> None:
    assert masking_of(cudnn()) == Masking(None, True)
    assert masking_of(cudnn(causal="False", mask=(1, 1, 512, 512))) == Masking((1, 1, 512, 512), False)
    assert masking_of(cudnn(values=False)) == Masking(None, None)
    assert masking_of(Operator("aten::mm", ((1, 2),), ("float",))) is None
    efficient = Operator("aten::_efficient_attention_forward", HEADS, ("bf16",) * 3, ("",) * 9 + ("1",))
    assert masking_of(efficient) == Masking(None, True)


def test_attention_under_another_mask_is_other_work() -> None:
    assert same_inputs(cudnn(), cudnn())
    assert not same_inputs(cudnn(), cudnn(causal="False")) and not same_inputs(cudnn(), cudnn(mask=(512, 512)))
    # A flag that was not recorded makes no difference.
    assert same_inputs(cudnn(), cudnn(values=False))


#: How cuBLAS calls the two kernels of a product of float32 that is split along K, the second of which sums up.
WHOLE = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_ffma_aligna4_alignc4_execute_kernel__5x_cublas"
SUM = WHOLE.replace("execute_kernel", "execute_split_k_kernel")


def test_a_triton_kernel_that_may_stand_for_what_eager_did_prepares_nothing() -> None:
    one = attention(8, 16, 32, call=0)
    fused = triton("add_native_layer_norm", (16, 32), call=1)
    told = find_evidence("substituted", [one, eager("add", (16, 32), call=1)], [one, fused])
    assert not any(each.kind == "inputs_prepared" for each in told)
    told = find_evidence("defused", [one, eager("add", (16, 32), call=1)], [one, fused, replace(fused, call=2)])
    assert Evidence("inputs_prepared", {"kernels": 1}) in told


def test_a_product_that_is_summed_up_afterwards_is_said_to_be_split() -> None:
    before = product(64, 64, 4096, call=0, kernel=WHOLE)
    after = [replace(before, name=WHOLE.replace("32x32", "64x64")), replace(before, name=SUM.replace("32x32", "64x64"))]
    told = find_evidence("substituted", [before], after)
    assert Evidence("split_along_k", {"is_split": True}) in told


def test_the_sum_of_a_split_product_is_no_product_in_float32() -> None:
    before = product(64, 64, 4096, call=0)
    after = [replace(before, name=WHOLE, operator=None), replace(before, name=SUM, operator=None)]
    told = find_evidence("defused", [before], after)
    assert Evidence("single_precision", {"products": 1, "before": "bfloat16"}) in told


@pytest.mark.parametrize(
    ("operator", "plain"),
    [
        ("aten.add_.Tensor", "add"),
        ("aten::addmm", "addmm"),
        ("extern_kernels.addmm", "addmm"),
        ("torch.ops.aten._scaled_dot_product_cudnn_attention.default", "_scaled_dot_product_cudnn_attention"),
        ("aten.__and__.Tensor", "__and__"),
        ("aten._foreach_copy_.default", "_foreach_copy"),
    ],
)
def test_one_operator_has_one_plain_name(operator: str, plain: str) -> None:
    assert plain_name(operator) == plain


def test_what_is_done_beside_a_product_is_told_by_operators_templates_and_kernels() -> None:
    assert operator_epilogue("aten::mm") == operator_epilogue("aten::add") == frozenset()
    assert operator_epilogue("aten::baddbmm") == {"add"}
    assert operator_epilogue("triton_tem_fused_addmm_relu_3") == {"add", "relu"}
    assert operator_epilogue("triton_poi_fused_addmm_relu_3") == frozenset()
    assert kernel_epilogue("nvjet_tst_128x64_bias_TNT") == {"add"}


def test_each_kind_of_library_kernel_is_counted_by_itself() -> None:
    attends, multiplies, adds = attention(8, 16, 32, call=0), product(8, 8, 8, call=1), eager("add", (8,), call=2)
    other = replace(multiplies, call=3)
    told = label_of("defused", [attends, multiplies, other, adds], [attends, multiplies], 3)
    assert isinstance(told, GroupLabel)
    assert (told.kind, told.repeats) == ("defused", 3)
    assert told.before == KernelCounts(4, 0, (("attention", 1), ("product", 2)))
    assert told.after == KernelCounts(2, 0, (("attention", 1), ("product", 1)))


def test_what_sums_up_a_split_product_is_one_more_kernel() -> None:
    multiplies = product(8, 8, 8, call=1)
    told = label_of("substituted", [multiplies], [multiplies, replace(multiplies, name=SUM)], 1)
    assert isinstance(told, GroupLabel)
    assert told.before == KernelCounts(1, 0, (("product", 1),))
    assert told.after == KernelCounts(2, 0, (("product", 1),))


def test_the_library_kernel_s_inputs_or_the_longest_one_s_are_told() -> None:
    assert sizes_of([eager("mul", (4, 4), call=0, us=1e6), product(64, 32, 16, call=1)]) == "32, 64x16, 16x32"
    assert sizes_of([eager("mul", (4, 4), call=0, us=1), eager("add", (8,), (8,), call=1, us=2)]) == "8, 8"
    assert sizes_of([eager("cat", (1,), (2,), (3,), (4,), call=0)]) == "1, 2, 3, ..."
    assert sizes_of([replace(eager("mul", call=0), operator=None)]) == sizes_of([]) == ""
