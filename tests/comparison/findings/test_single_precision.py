from __future__ import annotations

from dataclasses import replace

import pytest

from tracekit.comparison import compare
from tracekit.comparison.findings.single_precision import find_single_precision
from tracekit.model.comparison import Finding, Side
from tracekit.model.sequence import Activity, Operator, Sequence

from ...sides import make_analysis, make_form, make_settings, make_side, scaled


def product(dtype: str, us: float) -> Activity:
    return Activity("gemm", "gemm", us, Operator("aten::bmm", ((8, 8, 8), (8, 8, 8)), (dtype, dtype)))


def side(label: str, *activities: Activity, dtype: str = "bfloat16", bare: bool = False) -> Side:
    made = make_side(label, make_analysis(), None if bare else make_form("compiled", scaled(1.3)))
    settings = None if bare else make_settings(dtype=dtype)
    return replace(made, settings=settings, sequence=Sequence(activities, 1.0, "own"))


def found(a: Side, b: Side) -> Finding | None:
    # The kernels by name are another matter: what is asked here is of the sequences.
    plain = compare(replace(a, sequence=None), replace(b, sequence=None))
    return find_single_precision(replace(plain, a=a, b=b))


HALF, SINGLE = product("c10::BFloat16", 100.0), product("float", 80.0)


def test_float32_products_in_a_model_of_16_bits_are_found_with_half_their_time():
    finding = found(side("eager", HALF), side("compiled", HALF, SINGLE))
    assert finding.saving_us == pytest.approx(40)
    assert (finding.facts["products"], finding.facts["operators"]) == (1, ["aten::bmm"])
    assert finding.facts["products_us"] == pytest.approx(80)
    assert (finding.facts["read"], finding.facts["read_before"]) == (1, 0)


def test_where_eager_has_them_too_the_model_is_to_blame():
    finding = found(side("eager", HALF, SINGLE), side("compiled", HALF, SINGLE))
    assert (finding.facts["read"], finding.facts["read_before"], finding.facts["before"]) == (1, 1, "eager")


def test_a_model_of_float32_may_multiply_in_it():
    assert found(side("eager", SINGLE, dtype="float32"), side("compiled", SINGLE, dtype="float32")) is None


def test_of_bare_traces_the_other_products_tell_the_model_s_type():
    assert found(side("a", HALF, bare=True), side("b", HALF, SINGLE, bare=True)) is not None
    assert found(side("a", HALF, bare=True), side("b", product("c10::BFloat16", 10.0), SINGLE, bare=True)) is None


def test_a_fiftieth_of_the_gpu_s_time_is_not_told():
    assert found(side("eager", HALF), side("compiled", HALF, product("float", 15.0))) is None
