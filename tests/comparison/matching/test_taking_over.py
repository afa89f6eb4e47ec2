"""What a library call does itself on one side, and other kernels do on the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sequences import eager, make_sequence, product, triton

from tracekit.comparison.matching import align
from tracekit.comparison.matching.groups import group_by_cells
from tracekit.comparison.matching.operators import kernel_epilogue, operator_epilogue
from tracekit.model.comparison import KernelGroup
from tracekit.model.evidence import Evidence
from tracekit.model.sequence import Activity, Operator

FIRST, LAST = product(32, 64, 64, call=0), product(16, 64, 64, call=9)


def plain(call: int, kernel: str = "gemm") -> Activity:
    """A product of 64x64 elements that adds nothing."""
    operator = Operator("aten::mm", ((64, 32), (32, 64)), ("c10::BFloat16",) * 2)
    return replace(product(64, 64, 32, call=call, within="mm", kernel=kernel), operator=operator)


def adding(call: int, kernel: str = "gemm", within: str = "addmm") -> Activity:
    return product(64, 64, 32, call=call, within=within, kernel=kernel)


def add(call: int, *shape: int) -> Activity:
    return eager("add", shape or (64, 64), (64,), call=call)


def cells(a: list[Activity], b: list[Activity]) -> dict[tuple[int, ...], tuple[tuple[int, ...], str, bool]]:
    return {cell.a: (cell.b, cell.how, cell.exact) for cell in align(make_sequence(a), make_sequence(b))}


def second(a: list[Activity], b: list[Activity]) -> KernelGroup:
    """The group of A's second activity."""
    one, other = make_sequence(a), make_sequence(b)
    return next(group for group in group_by_cells(one, other, align(one, other)) if 1 in group.a_at)


@pytest.mark.parametrize("kernel", ["gemm", "gemm_bias"])
def test_a_product_and_what_was_added_to_it_are_fused_into_one_call_that_adds(kernel: str) -> None:
    a, b = [FIRST, plain(1), add(2), LAST], [FIRST, adding(1, kernel), LAST]
    assert cells(a, b) == {
        (0,): ((0,), "anchors", True),
        (1, 2): ((1,), "anchors", True),
        (3,): ((2,), "anchors", True),
    }
    assert second(a, b).kind == "fused"
    assert second(b, a).kind == "defused"


def test_a_product_that_no_longer_adds_is_defused_with_the_triton_kernel_that_only_adds() -> None:
    a, b = [FIRST, adding(1), LAST], [FIRST, plain(1), triton("add", (64, 64), call=2), LAST]
    assert (second(a, b).kind, second(a, b).delta_count) == ("defused", 1)


def test_an_activation_is_fused_into_the_call_that_applies_it() -> None:
    a = [FIRST, plain(1), add(2), eager("relu", (64, 64), call=3), LAST]
    b = [FIRST, adding(1, within="_addmm_activation"), LAST]
    assert cells(a, b)[1, 2, 3] == ((1,), "anchors", True)


def test_a_kernel_of_the_same_operator_that_names_its_epilogue_takes_the_activation_over() -> None:
    a = [FIRST, plain(1), eager("relu", (64, 64), call=2), LAST]
    assert cells(a, [FIRST, plain(1, "gemm_relu"), LAST])[1, 2] == ((1,), "anchors", True)


def test_of_two_additions_the_first_is_the_call_s_and_that_is_not_sure() -> None:
    found = cells([FIRST, plain(1), add(2), add(3), LAST], [FIRST, adding(1), LAST])
    assert found[1, 2] == ((1,), "anchors", False)
    assert found[3,] == ((), "unmatched", True)


@pytest.mark.parametrize("other", [eager("tanh", (64, 64), call=2), add(2, 7, 7)])
def test_work_that_the_call_does_not_do_or_of_another_size_is_not_put_to_it_nor_said_to_be_gone(
    other: Activity,
) -> None:
    found = cells([FIRST, plain(1), other, LAST], [FIRST, adding(1), LAST])
    assert found[2,] == ((), "unmatched", True)
    assert found[1,] == ((1,), "anchors", True)


def test_a_call_that_is_the_same_on_both_sides_takes_nothing_over() -> None:
    found = cells([FIRST, plain(1), add(2), LAST], [FIRST, plain(1), LAST])
    assert found[2,] == ((), "anchors", True)


def test_an_operator_that_adds_in_place_of_one_that_does_not_is_no_unchanged_kernel() -> None:
    group = second([FIRST, plain(1), LAST], [FIRST, adding(1), LAST])
    assert group.kind == "substituted"
    assert (
        Evidence("other_operator", {"work": "product", "before": "aten::mm", "after": "aten::addmm"}) in group.evidence
    )


def test_what_is_done_beside_a_product_is_told_by_operators_templates_and_kernels() -> None:
    assert operator_epilogue("aten::mm") == operator_epilogue("aten::add") == frozenset()
    assert operator_epilogue("aten::baddbmm") == {"add"}
    assert operator_epilogue("triton_tem_fused_addmm_relu_3") == {"add", "relu"}
    assert operator_epilogue("triton_poi_fused_addmm_relu_3") == frozenset()
    assert kernel_epilogue("nvjet_tst_128x64_bias_TNT") == {"add"}
