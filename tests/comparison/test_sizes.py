from __future__ import annotations

from dataclasses import replace

from tests.sequences import eager, product

from tracekit.comparison.matching.labels import sizes_of


def test_the_library_kernel_s_inputs_are_told() -> None:
    long = replace(eager("mul", (4, 4), call=0), duration_us=1e6)
    assert sizes_of([long, product(64, 32, 16, call=1)]) == "32, 64x16, 16x32"


def test_without_a_library_kernel_the_longest_one_s_are() -> None:
    assert sizes_of([eager("mul", (4, 4), call=0, us=1), eager("add", (8,), (8,), call=1, us=2)]) == "8, 8"


def test_of_many_inputs_the_first_are_told() -> None:
    assert sizes_of([eager("cat", (1,), (2,), (3,), (4,), call=0)]) == "1, 2, 3, ..."


def test_what_was_not_recorded_is_empty() -> None:
    assert sizes_of([replace(eager("mul", call=0), operator=None)]) == sizes_of([]) == ""
