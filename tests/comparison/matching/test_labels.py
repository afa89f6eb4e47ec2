from __future__ import annotations

from dataclasses import replace

from tests.comparison.matching.test_kinds import SUM
from tests.sequences import attention, eager, product

from tracekit.comparison.matching.labels import label_of, sizes_of
from tracekit.model.groups import GroupLabel, KernelCounts


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
