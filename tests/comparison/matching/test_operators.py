from __future__ import annotations

import pytest

from tracekit.comparison.matching.operators import kernel_epilogue, operator_epilogue, plain_name


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
