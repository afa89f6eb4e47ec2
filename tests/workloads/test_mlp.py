from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.run import Component  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request  # noqa: E402
from tracekit.workloads import mlp  # noqa: E402
from tracekit.workloads.mlp_info import MLP  # noqa: E402
from tracekit.workloads.sizes import check_request  # noqa: E402


def build(**asked: object) -> BuiltWorkload:
    return mlp.build(Request("mlp", **asked), "tiny", "cpu", Silent())  # type: ignore[arg-type]


def output(workload: BuiltWorkload) -> torch.Tensor:
    found = workload.call()
    assert isinstance(found, torch.Tensor)
    return found


def test_what_comes_out_has_the_shape_of_what_went_in() -> None:
    found = output(build(batch_size=3))
    assert found.shape == (3, 32, 64)
    assert torch.isfinite(found).all()


def test_weights_and_input_have_the_dtype_asked_for() -> None:
    assert output(build(dtype="bfloat16")).dtype == torch.bfloat16


def test_equal_seeds_give_equal_outputs_and_others_do_not() -> None:
    assert torch.equal(output(build(seed=3)), output(build(seed=3)))
    assert not torch.allclose(output(build(seed=3)), output(build(seed=4)))


def test_the_whole_model_is_compiled_and_counted() -> None:
    workload = build()
    assert [target.component for target in workload.targets] == ["model"]
    # Of a block: two weights of 64 x 256, their biases, and the norm's weight and bias.
    block = 2 * 64 * 256 + (256 + 64) + 2 * 64
    assert workload.components == (Component("model", 2 * block, compiled=True),)


def test_every_block_has_a_name() -> None:
    ((name, model),) = build().modules
    assert name == "model"
    assert [type(block).__name__ for block in model.children()] == ["Block", "Block"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"width": 64}, "mlp has no --width: leave it out"),
        ({"prompt": "hello", "pretrained": "owner/model"}, "mlp has no --prompt and no --pretrained: leave them out"),
    ],
)
def test_what_an_mlp_has_not_is_refused(asked: dict[str, object], message: str) -> None:
    with pytest.raises(TracekitError) as caught:
        check_request(MLP, Request("mlp", **asked))  # type: ignore[arg-type]
    assert str(caught.value) == message
