from __future__ import annotations

from dataclasses import replace

from tests.sequences import attention, eager, product

from tracekit.comparison.describing import describe

from .test_evidence import SUM


def test_each_kind_of_library_kernel_is_counted_by_itself() -> None:
    attends, multiplies, adds = attention(8, 16, 32, call=0), product(8, 8, 8, call=1), eager("add", (8,), call=2)
    other = replace(multiplies, call=3)
    told = describe("defused", [attends, multiplies, other, adds], [attends, multiplies], 3)
    assert told.startswith("x3: attention, 2 products and 1 more -> attention and product")


def test_what_sums_up_a_split_product_is_one_more_kernel() -> None:
    multiplies = product(8, 8, 8, call=1)
    told = describe("substituted", [multiplies], [multiplies, replace(multiplies, name=SUM)], 1)
    assert told.startswith("product -> product and 1 more")
