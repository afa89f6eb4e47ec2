from __future__ import annotations

from dataclasses import replace

from tests.sequences import attention, eager, product, triton

from tracekit.comparison.matching.kinds import find_evidence
from tracekit.model.evidence import Evidence

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
