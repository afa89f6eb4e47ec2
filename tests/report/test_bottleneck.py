"""Why a launch-bound side waits for its host, in a line of the first screen."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.sides import make_analysis, make_form, make_side

from tracekit.comparison.cost.bound import find_bound
from tracekit.model.comparison import Side
from tracekit.model.idle_estimate import Between, IdleEstimate
from tracekit.report.words import short
from tracekit.report.words.common import cause_words

#: Per step 100 us busy.
WORK = {"gemm": ("gemm", 20, 200.0)}


def side_of(causes: dict[str, float], *, low: float = 1.0, timed: bool = True, graphs: int = 0) -> Side:
    """1,900 us idle of a call of 2,000; each cause may be as little as that share of it."""
    us = {cause: 1900 * share for cause, share in causes.items()}
    estimate = IdleEstimate({cause: Between(each, low * each, each) for cause, each in us.items()})
    analysis = make_analysis(WORK, idle_us=3800, causes=causes, graph_launches=graphs)
    if timed:
        return make_side("a", analysis, make_form(wall_us=(2000.0,) * 10), idle_estimate=estimate)
    return make_side("a", analysis, recorded_idle_estimate=estimate)


def why(side: Side) -> str:
    bound = find_bound(side)
    assert bound is not None and bound.kind == "launch-bound"
    return short.bottleneck(side, bound)[1]


LAUNCHES = {"launch_call": 0.2, "op_dispatch": 0.2, "launch_latency": 0.15, "python": 0.45}
PYTHON = {"launch_call": 0.2, "op_dispatch": 0.2, "python": 0.6}


@pytest.mark.parametrize("timed", [True, False], ids=["a run", "a trace alone"])
def test_graphs_are_named_where_launching_is_most_of_idle_time_else_its_largest_cause(*, timed: bool) -> None:
    assert why(side_of(LAUNCHES, timed=timed)).endswith("; no CUDA graph")
    assert why(side_of(PYTHON, timed=timed)).endswith(f"; largest cause {cause_words('python')}")
    assert "graph" not in why(side_of(PYTHON, timed=timed, graphs=2))


@pytest.mark.parametrize(
    ("causes", "low"),
    [
        # Dispatch may be as much; a cause that is none.
        (PYTHON, 0.3),
        ({"unattributed": 1.0}, 1.0),
    ],
)
@pytest.mark.parametrize("timed", [True, False], ids=["a run", "a trace alone"])
def test_no_cause_is_named_that_is_not_the_largest_for_certain(
    causes: dict[str, float], low: float, *, timed: bool
) -> None:
    assert why(side_of(causes, low=low, timed=timed)).endswith(")")


def test_without_ranges_no_largest_cause_is_known() -> None:
    side = side_of(PYTHON, timed=False)
    assert why(replace(side, recorded_idle_estimate=None)).endswith(")")
