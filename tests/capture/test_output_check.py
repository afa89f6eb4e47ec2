"""What forms return, with a fault planted in one of them; small pictures; calls that learn."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
import torch
from PIL import Image
from tests.capture.conftest import Block, make_workload
from torch import nn

from tracekit.capture.forms import Form, eager_form
from tracekit.capture.output_check import (
    check_outputs,
    draw_difference,
    draw_image,
    find_images,
    keep_weights,
    with_files,
)
from tracekit.capture.outputs import keep_output
from tracekit.model.progress import Silent
from tracekit.model.run import UserModel
from tracekit.model.workload import BuiltWorkload, CompileTarget


class Clipped(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.inner(x))


@pytest.fixture
def named(block: Block) -> BuiltWorkload:
    x = torch.randn(64, 8)
    workload = make_workload(lambda: block(x).detach(), ())
    return replace(workload, modules=(("block", block),))


def other_form(call: Any) -> Form:
    return Form("compiled", "cpu", call)


def test_a_fault_in_one_form_shows_beside_eager_and_the_reference(named: BuiltWorkload) -> None:
    sound = check_outputs(named, (eager_form(named), other_form(named.call)), 0, Silent())
    assert sound["eager"].numerics.against_eager is None
    assert (sound["eager"].numerics.reference_dtype, sound["eager"].numerics.reference_missing) == ("float64", None)
    eager, reference = sound["compiled"].numerics.against_eager, sound["compiled"].numerics.against_reference
    assert eager is not None and reference is not None
    assert eager.tensors[0].equal_share == 1
    assert 0 < (reference.tensors[0].relative or 0) < 1e-6
    faulty = other_form(lambda: named.call() * 1.01)  # type: ignore[operator]
    numerics = check_outputs(named, (eager_form(named), faulty), 0, Silent())["compiled"].numerics
    for difference in (numerics.against_eager, numerics.against_reference):
        assert difference is not None
        assert difference.tensors[0].relative == pytest.approx(0.01, rel=1e-3)


def test_random_calls_are_seeded_alike_and_what_still_differs_is_the_floor(named: BuiltWorkload) -> None:
    calls = iter(range(100))
    seeded = check_outputs(replace(named, call=lambda: torch.rand(8)), (eager_form(named),), 0, Silent())
    assert seeded["eager"].numerics.against_itself.tensors[0].equal_share == 1  # type: ignore[union-attr]
    changing = other_form(lambda: torch.ones(8) + next(calls))
    found = check_outputs(named, (changing,), 0, Silent())["compiled"].numerics
    assert found.against_eager is None
    assert found.against_itself is not None
    assert found.against_itself.tensors[0].max_abs == 1


def test_images_are_drawn_with_their_difference(named: BuiltWorkload) -> None:
    pytest.importorskip("PIL")
    images = torch.rand(1, 3, 32, 32) / 2
    eager = Form("eager", "cpu", lambda: images)
    compiled = other_form(lambda: images + 0.01)
    checked = check_outputs(named, (eager, compiled), 0, Silent())
    assert [each.kind for each in checked["eager"].drawings] == ["output"]
    assert [each.kind for each in checked["compiled"].drawings] == ["output", "difference"]
    numerics = with_files(checked["compiled"], ("a.png", "b.png"))
    assert [(each.path, each.scale) for each in numerics.pictures] == [("a.png", 1.0), ("b.png", 64.0)]


def test_a_fault_planted_in_inductor_is_found() -> None:
    from tracekit.capture.forms import compiled_form
    from tracekit.capture.warmup import warm_up
    from tracekit.model.workload import CompileTarget

    inductor = pytest.importorskip("torch._inductor.config")
    if not hasattr(inductor.cpp, "inject_relu_bug_TESTING_ONLY"):
        pytest.skip("this torch has no fault to plant")
    model, x = Clipped().requires_grad_(False), torch.randn(64, 8)
    workload = make_workload(lambda: model(x), (CompileTarget("model", model),))
    workload = replace(workload, modules=(("model", model),))

    def relative(fault: str | None) -> float:
        # Not with monkeypatch, after which the setting would be gone for every later test.
        with inductor.patch({"cpp.inject_relu_bug_TESTING_ONLY": fault}):
            forms = (eager_form(workload), compiled_form(workload))
            warm_up(forms[1], Silent())
            against = check_outputs(workload, forms, 0, Silent())["compiled"].numerics.against_reference
        assert against is not None
        return against.tensors[0].relative or 0.0

    assert relative(None) < 1e-6
    assert relative("accuracy") > 0.1


def test_three_channels_from_0_to_1_are_images_and_nothing_else_is() -> None:
    images = torch.rand(2, 3, 32, 48)
    found = find_images(keep_output({"logits": torch.rand(2, 9), "images": images}))
    assert found is not None
    assert torch.equal(found, images)
    others = [torch.rand(2, 4, 32, 32), torch.rand(2, 3, 8, 8), torch.rand(3, 32, 32), torch.randn(1, 3, 32, 32)]
    for other in (*others, torch.full((1, 3, 32, 32), float("nan"))):
        assert find_images(keep_output(other)) is None


def test_a_picture_shows_the_first_image_made_small_in_its_proportion() -> None:
    drawn = Image.open(io.BytesIO(draw_image(torch.stack((torch.ones(3, 512, 1024), torch.zeros(3, 512, 1024))))))
    assert (drawn.size, drawn.getpixel((0, 0))) == ((192, 96), (255, 255, 255))
    assert Image.open(io.BytesIO(draw_image(torch.rand(1, 3, 64, 32)))).size == (32, 64)


def test_a_difference_is_scaled_until_its_largest_value_is_white() -> None:
    one, other = torch.zeros(1, 3, 16, 16), torch.zeros(1, 3, 16, 16)
    one[0, 0, 0, 0] = 0.25
    png, scale = draw_difference(one, other)
    assert scale == 4
    picture = Image.open(io.BytesIO(png))
    assert [picture.getpixel((0, 0)), picture.getpixel((1, 0))] == [(255, 0, 0), (0, 0, 0)]
    assert draw_difference(other + 1e-4, other)[1] == 64, "tiny differences are not blown up"
    assert draw_difference(other, other)[1] == 1


def training(*, own: bool = True) -> tuple[BuiltWorkload, Any]:
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    optimizer, x = torch.optim.SGD(net.parameters(), lr=0.5), torch.randn(8, 4)

    def step() -> object:
        loss = net(x).sin().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    built = make_workload(step, (CompileTarget("net", net),), own=UserModel() if own else None)
    return replace(built, modules=(("net", net),)), net


def test_weights_and_buffers_that_a_call_changes_are_put_back() -> None:
    workload, net = training()
    put_back = keep_weights(workload)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    workload.call()
    changed = [name for name, value in net.state_dict().items() if not torch.equal(value, before[name])]
    assert {"0.weight", "1.running_mean"} <= set(changed)
    put_back()
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_every_call_that_is_compared_begins_with_the_same_weights() -> None:
    workload, _ = training()
    found = check_outputs(workload, (eager_form(workload),), 0, Silent())["eager"].numerics
    assert found.against_itself is not None
    assert [each.equal_share for each in found.against_itself.tensors] == [1.0]
    assert found.reference_missing is not None


def test_a_model_that_learns_nothing_is_not_copied_back() -> None:
    workload, net = training()
    quiet = replace(workload, call=lambda: net[0](torch.ones(1, 4)))
    put_back = keep_weights(quiet)
    with torch.no_grad():
        net[0].weight.zero_()
    put_back()
    assert not net[0].weight.any()
    workload, net = training(own=False)
    before = net[0].weight.clone()
    keep_weights(workload)
    assert torch.equal(net[0].weight, before), "models of tracekit's own are not even called for it"
