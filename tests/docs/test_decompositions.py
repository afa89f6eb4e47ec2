"""The table of decompositions is what the installed torch makes of these operators."""

import json

import pytest

from tracekit.comparison.matching.operators import DECOMPOSITIONS

TOLD = json.loads(DECOMPOSITIONS.read_text())["operators"]


@pytest.mark.parametrize("operator", ["upsample_bilinear2d", "cudnn_batch_norm"])
def test_an_operator_is_taken_apart_as_the_table_says(operator: str):
    torch = pytest.importorskip("torch")
    # Loads Inductor, which takes seconds: only where this test runs.
    from docs.making.decompositions import calls, is_taken_apart, parts_of

    call, shapes = next((call, shapes) for name, call, shapes in calls() if name == operator)
    assert is_taken_apart(operator)
    assert not is_taken_apart("grid_sampler_2d")
    found = parts_of(call, [torch.zeros(shape) for shape in shapes])
    assert any(set(parts) <= found for parts in TOLD[operator])
