from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sequences import eager, make_activity, make_sequence, product, triton

from tracekit.comparison.judging.other_sizes import find_misfit
from tracekit.model.comparison import Side
from tracekit.model.sequence import Activity, OperatorSource

from ...sides import make_settings, make_side


def side(*activities: Activity, label: str = "a", operators: OperatorSource = "own") -> Side:
    return replace(make_side(label), sequence=make_sequence(activities, operators))


def products(batch: int) -> list[Activity]:
    return [product(batch * 64, 32 * at, 16, call=at) for at in range(1, 7)]


GRAPHED = side(label="graphed", operators="none")


def test_a_lender_of_the_same_sizes_fits_also_where_the_compiler_exchanged_some() -> None:
    lender = side(*products(1)[:3], product(7, 7, 7, call=8), product(7, 7, 8, call=9), triton("add", (64, 64), call=7))
    assert find_misfit(lender, GRAPHED, side(*products(1), eager("add", (64, 64), call=7))) is None


def test_a_lender_of_another_batch_size_does_not() -> None:
    # Twice as many operations are those of the next but one: what is summed up is of another length.
    layers = [product(2 * 64, 32 * at, 16, call=at) for at in range(1, 7)]
    own = [product(64, 64 * at, 32, call=at) for at in range(1, 7)]
    for operators in ("own", "rich"):
        eager_side = side(*own, label="eager", operators=operators)
        why = find_misfit(side(*layers, label="lender"), GRAPHED, eager_side)
        assert why == "6 of its 6 products have other sizes than any of eager's"


def test_a_product_is_the_same_however_its_dimensions_are_put_together() -> None:
    shape = (1, 4, 64, 32)
    own = [
        make_activity("nvjet", "gemm", "linear", ((4, 16, 8), (32, 8)), 1),
        make_activity("nvjet", "gemm", "bmm", ((4, 16, 8), (4, 8, 64)), 2),
        make_activity("flash", "attention", "_scaled_dot_product_flash_attention", (shape,) * 3, 3),
        make_activity("gemm", "gemm", "mm", ((32, 8), (8, 9)), 4),
    ]
    lent = [
        make_activity("nvjet", "gemm", "mm", ((64, 8), (8, 32)), 1),
        make_activity("nvjet", "gemm", "bmm", ((4, 64, 8), (4, 8, 16)), 2),
        make_activity("flash", "attention", "_scaled_dot_product_cudnn_attention", (shape,) * 3, 3),
        make_activity("gemm", "gemm", "mm", ((5, 5), (5, 5)), 4),
    ]
    assert find_misfit(side(*lent), GRAPHED, side(*own)) is None
    for one in range(3):
        found = find_misfit(side(*[lent[one]] * 4), GRAPHED, side(own[one]))
        assert found is None, lent[one]


def test_where_sizes_are_not_known_nothing_is_said() -> None:
    assert find_misfit(side(*products(5)[:3]), GRAPHED, side(*products(1))) is None
    assert find_misfit(side(*products(5)), GRAPHED, side(eager("add", (64, 64), call=7))) is None
    assert find_misfit(side(*products(5)), GRAPHED, GRAPHED) is None
    assert find_misfit(side(*products(5)), GRAPHED, make_side()) is None
    # Borrowed sizes prove nothing.
    assert find_misfit(side(*products(5)), GRAPHED, side(*products(1), operators="lent")) is None


@pytest.mark.parametrize(
    ("field", "value"), [("batch_size", 4), ("height", 1024), ("seq_length", 1024), ("dtype", "float16")]
)
def test_runs_with_other_settings_are_of_other_sizes(field: str, value: object) -> None:
    lender, borrower = (
        replace(side(), settings=make_settings(**{field: value})),
        replace(GRAPHED, settings=make_settings()),
    )
    why = find_misfit(lender, borrower, side())
    assert why is not None
    assert str(value) in why
    assert find_misfit(replace(lender, settings=make_settings(mode="max-autotune")), borrower, side()) is None
