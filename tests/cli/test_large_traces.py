"""Traces that are large in one respect take time and memory as their size: what is quadratic takes a minute for these,
or gigabytes."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import FACTOR, fuzzed
from tests.large_traces import SHAPES, chain, cost_of, flat, overlapping, threads, write_events
from tests.traces import make_span

#: About half a second and 130 MiB, on a machine that does nothing else.
MOST_SECONDS = 5
MOST_MEBIBYTES = 500


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trace_that_is_large_in_one_respect_is_analyzed_in_seconds(tmp_path: Path, shape: str) -> None:
    make, count = SHAPES[shape]
    path = write_events(tmp_path / "large.json", make(count))
    output, seconds, mebibytes = cost_of("analyze", path, "--no-cache", "--json", "-")
    found = msgspec.json.decode(output)
    assert found["kernels"]["count"] == count
    assert seconds < MOST_SECONDS
    assert mebibytes < MOST_MEBIBYTES


def test_operators_of_many_threads_are_analyzed_in_seconds_without_a_gpu(tmp_path: Path) -> None:
    path = write_events(tmp_path / "large.json", [each for each in threads(5000) if each["cat"] == "cpu_op"])
    output, seconds, _ = cost_of("analyze", path, "--cpu", "--no-cache", "--json", "-")
    assert msgspec.json.decode(output)["cpu"]["operator_count"] == 5000
    assert seconds < MOST_SECONDS


@fuzzed(2 if FACTOR == 1 else 1)
@given(
    st.lists(st.tuples(st.sampled_from((chain, overlapping)), st.integers(1, 3000)), max_size=3), st.integers(0, 2500)
)
def test_any_depth_and_any_number_of_threads_is_analyzed_in_seconds(
    tmp_path_factory: pytest.TempPathFactory, nested: list[tuple[object, int]], count: int
) -> None:
    made = [*flat(make(depth) for make, depth in nested), *threads(count), make_span(0, 10)]  # type: ignore[operator]
    path = write_events(tmp_path_factory.getbasetemp() / "drawn.json", [*made, *chain(1)])
    _, seconds, mebibytes = cost_of("analyze", path, "--no-cache", "--json", "-", "--window", "whole")
    assert seconds < MOST_SECONDS
    assert mebibytes < MOST_MEBIBYTES
