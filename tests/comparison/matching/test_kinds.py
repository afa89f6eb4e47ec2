import pytest
from msgspec.structs import replace
from tests.sequences import attention, batched, eager, make_activity, product, triton

from tracekit.comparison.matching.groups import label_of, sizes_of
from tracekit.comparison.matching.kinds import find_evidence, kind_of, without_same
from tracekit.comparison.matching.operators import (
    Masking,
    kernel_epilogue,
    masking_of,
    operator_epilogue,
    same_inputs,
)
from tracekit.model.groups import Change, KernelCounts
from tracekit.model.sequence import Activity, Operator
from tracekit.names import plain_name
from tracekit.statements import evidence

GEMM = product(64, 64, 64, call=0)
OTHER_GEMM = replace(GEMM, name="cutlass_gemm")
GELU = eager("gelu", (64, 64), call=1)
FUSED_GELU = triton("gelu", (64, 64), call=1)
TEMPLATE = make_activity("triton_tem_fused_addmm_3", "gemm", "triton_tem_fused_addmm_3", ((64, 64),) * 3, 0)
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
        # On other sizes or types a kernel is not unchanged, where both sides know them.
        ([GEMM], [product(64, 64, 128, call=0)], "substituted"),
        ([GEMM], [replace(GEMM, operator=replace(GEMM.operator, dtypes=("float",) * 3))], "substituted"),
        ([GEMM], [replace(GEMM, operator=None)], "unchanged"),
        ([GEMM], [replace(GEMM, operator=replace(GEMM.operator, dims=(), dtypes=()))], "unchanged"),
        ([GELU], [eager("gelu", (64, 128), call=1)], "substituted"),
        ([GELU], [eager("gelu", (1, 64, 64), call=1)], "unchanged"),
        # The number in a Triton kernel's name says nothing, its inputs do.
        ([FUSED_GELU], [triton("gelu", (64, 64), call=1, number=7)], "unchanged"),
        ([FUSED_GELU], [triton("gelu", (64, 65), call=1)], "fused"),
    ],
)
def test_what_became_of_kernels(a: list[Activity], b: list[Activity], kind: str) -> None:
    assert kind_of(a, b) == kind


def test_equal_kernels_are_taken_away_one_for_one() -> None:
    assert without_same([GELU, GEMM, GELU], [GELU, FUSED_GELU]) == ([GEMM, GELU], [FUSED_GELU])


MM = Operator("aten::mm", ((4, 8), (8, 2)), ("float", "float"))
ADDMM = Operator("aten::addmm", ((2,), (4, 8), (8, 2)), ("float",) * 3)


def test_inputs_are_the_same_whatever_the_result_is_written_to_and_however_the_product_is_spelled() -> None:
    assert same_inputs(MM, replace(MM, dims=(*MM.dims, (4, 2)), dtypes=("float",) * 3))
    assert not same_inputs(MM, replace(MM, dims=((4, 8), (8, 3)), dtypes=("float",) * 2))
    assert not same_inputs(MM, replace(MM, dims=(*MM.dims, (4, 2), (4, 2)), dtypes=("float",) * 4))
    assert same_inputs(MM, ADDMM)
    assert not same_inputs(MM, replace(ADDMM, dtypes=("c10::Half",) * 3))


HEADS = ((1, 8, 512, 256),) * 3


def cudnn(*, causal: str = "True", mask: tuple[int, ...] = (), values: bool = True) -> Operator:
    said = (*("",) * 8, "False", "0.", causal) if values else ()
    return Operator("aten::_cudnn_attention_forward", (*HEADS, mask, *((),) * 9), ("bf16",) * 13, said)


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


SPLIT = product(64, 64, 4096, call=0, kernel=WHOLE)
LONG = product(64, 64, 4096, call=0, kernel="gemm_128x64_bias")
PARTS = replace(LONG, name="gemm_64x64_splitK")
EFFICIENT = replace(FLASH.operator, name="aten::_efficient_attention_forward")  # type: ignore[type-var]


def attending(us: float, keys: tuple[int, ...], operator: Operator) -> Activity:
    operator = replace(operator, dims=(HEADS[0], keys, keys, *operator.dims[3:]))
    return Activity("cudnn_flash_fprop", "attention", us, operator, (operator.name,), 0)


GROWN = Change((1, 1, 512, 256), (1, 8, 512, 256))


@pytest.mark.parametrize(
    ("kind", "a", "b", "told"),
    [
        # Attention that became products in float32.
        (
            *("defused", [FLASH], [BMM, triton("_safe_softmax", (8, 16, 16), call=2), BMM]),
            (
                evidence.AttentionLost("flash_fprop", products=2, other_kernels=1),
                evidence.SinglePrecision(2, before="bfloat16"),
            ),
        ),
        # A product that lost its bias and was split.
        (
            *("substituted", [LONG]),
            [make_activity("copy", "copy", "addmm", (), 0), PARTS, replace(PARTS, name="splitKreduce_kernel")],
            (
                evidence.EpilogueLost(1),
                evidence.SplitAlongK(is_split=True),
                evidence.OtherKernel("gemm_128x64_bias", "gemm_64x64_splitK"),
            ),
        ),
        # One that is summed up afterwards is split too; and that sum is no product in float32.
        (
            *("substituted", [SPLIT], [replace(SPLIT, name=name.replace("32x32", "64x64")) for name in (WHOLE, SUM)]),
            (evidence.SplitAlongK(is_split=True), evidence.OtherKernel(WHOLE, WHOLE.replace("32x32", "64x64"))),
        ),
        (
            *("substituted", [product(64, 64, 4096, call=0, kernel="gemm")]),
            [replace(SPLIT, name=name, operator=None) for name in (WHOLE, SUM)],
            (
                evidence.SinglePrecision(1, before="bfloat16"),
                evidence.EpilogueLost(0),
                evidence.SplitAlongK(is_split=True),
                evidence.OtherKernel("gemm", WHOLE),
            ),
        ),
        # A Triton kernel that may stand for what eager did prepares nothing; one more of them does.
        ("fused", [FLASH, GELU], [FLASH, FUSED_GELU], ()),
        ("defused", [FLASH, GELU], [FLASH, FUSED_GELU, FUSED_GELU], (evidence.InputsPrepared(1),)),
        # Attention by another operator.
        (
            *("substituted", [FLASH], [replace(FLASH, name="fmha_cutlassF", operator=EFFICIENT)]),
            (
                evidence.OtherKernel("flash_fprop", "fmha_cutlassF"),
                evidence.AttentionAskedOtherwise(
                    Change("aten::_scaled_dot_product_cudnn_attention", "aten::_efficient_attention_forward")
                ),
            ),
        ),
        # Attention that was given a mask, and what that costs.
        (
            "substituted",
            [attending(16.0, (1, 1, 512, 256), cudnn())],
            [attending(34.0, (1, 8, 512, 256), cudnn(causal="False", mask=(1, 1, 512, 512)))],
            (
                evidence.AttentionAskedOtherwise(
                    is_causal=Change(before=True, after=False),
                    mask=Change(None, (1, 1, 512, 512)),
                    key=GROWN,
                    value=GROWN,
                ),
                evidence.SameKernelOtherTime(16.0, 34.0),
            ),
        ),
        # An operator that adds in place of one that does not.
        (
            *("substituted", [replace(GEMM, operator=replace(GEMM.operator, name="aten::mm"))], [GEMM]),
            (evidence.OtherOperator("product", "aten::mm", "aten::addmm"),),
        ),
    ],
)
def test_what_shows_that_a_library_kernel_was_exchanged(kind, a, b, told) -> None:
    assert kind_of(a, b) == kind
    assert find_evidence(kind, a, b) == told


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


ONCE = KernelCounts(1, 0, (("product", 1),))


@pytest.mark.parametrize(
    ("kind", "a", "b", "before", "after"),
    [
        # Each kind of library kernel by itself.
        (
            *("defused", [FLASH, GEMM, GEMM, GELU], [FLASH, GEMM]),
            KernelCounts(4, 0, (("attention", 1), ("product", 2))),
            KernelCounts(2, 0, (("attention", 1), ("product", 1))),
        ),
        # What sums up a split product is one more kernel, and no product.
        ("substituted", [GEMM], [GEMM, replace(GEMM, name=SUM)], ONCE, KernelCounts(2, 0, (("product", 1),))),
    ],
)
def test_a_label_counts_the_kernels_of_both_sides(kind, a, b, before, after) -> None:
    label = label_of(kind, a, b, 3)
    assert (label.kind, label.repeats, label.before, label.after) == (kind, 3, before, after)


def test_the_library_kernel_s_inputs_or_the_longest_one_s_are_told() -> None:
    assert sizes_of([eager("mul", (4, 4), call=0, us=1e6), product(64, 32, 16, call=1)]) == "32, 64x16, 16x32"
    assert sizes_of([eager("mul", (4, 4), call=0, us=1), eager("add", (8,), (8,), call=1, us=2)]) == "8, 8"
    assert sizes_of([eager("cat", (1,), (2,), (3,), (4,), call=0)]) == "1, 2, 3, ..."
    assert sizes_of([replace(eager("mul", call=0), operator=None)]) == sizes_of([]) == ""
