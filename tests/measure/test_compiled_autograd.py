"""The backward of a small function, traced by autograd and compiled by nobody."""

import pytest
from tests.sides import make_settings

torch = pytest.importorskip("torch")

from tracekit.measure.compilation import dynamo_counters  # noqa: E402
from tracekit.measure.compiled_autograd import compiled_backward  # noqa: E402


@pytest.mark.parametrize("asked", [None, True])
def test_backward_is_traced_where_that_is_asked_for_and_gives_the_same(asked: bool | None) -> None:
    x = torch.ones(3, requires_grad=True)
    traced = dynamo_counters()["compiled_autograd"]["captures"]
    with compiled_backward(make_settings(compiled_autograd=asked), {"backend": "eager", "fullgraph": True})():
        (x * x).sum().backward()
    assert dynamo_counters()["compiled_autograd"]["captures"] - traced == bool(asked)
    assert torch.equal(x.grad, torch.full((3,), 2.0))
