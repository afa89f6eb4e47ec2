from __future__ import annotations

import math

import pytest
from tests.sides import make_analysis, make_form

from tracekit.model.timing import ControlCall, ProcessTimes

NO_TIMES = [math.nan, math.inf, 0.0, -1.0]


@pytest.mark.parametrize("us", NO_TIMES)
def test_a_call_that_took_no_time_is_refused_where_it_is_noted(us: float) -> None:
    with pytest.raises(ValueError, match="timed call 2 took"):
        make_form(wall_us=(1.0, us))
    with pytest.raises(ValueError, match="timed call 3 took"):
        ProcessTimes((1.0, 1.0, us), None, (), "asked number", 1.0)
    with pytest.raises(ValueError, match="took"):
        ControlCall(0, us, None)


@pytest.mark.parametrize("us", [math.nan, math.inf])
def test_a_kernel_that_took_no_time_is_refused_by_its_name(us: float) -> None:
    with pytest.raises(ValueError, match="gemm took"):
        make_analysis({"gemm": ("gemm", 1, us)})
