"""What forms return, with a fault planted in one of them; small pictures; calls that learn."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from PIL import Image
from tests.measure.conftest import Block, make_workload
from torch import nn

from tracekit.comparison.judging.accuracy import judge_outputs
from tracekit.measure import output_check
from tracekit.measure.forms import Form, compiled_form, eager_form
from tracekit.measure.output_check import (
    check_outputs,
    draw_difference,
    draw_image,
    find_images,
    keep_weights,
)
from tracekit.measure.outputs import keep_output
from tracekit.measure.ranks import OneProcess
from tracekit.model.numerics import FormNumerics
from tracekit.model.progress import Silent
from tracekit.model.run import UserModel
from tracekit.model.workload import BuiltWorkload, CompileTarget
from tracekit.statements.noted import ReferenceOfRanks


@pytest.fixture
def named(block: Block) -> BuiltWorkload:
    x = torch.randn(64, 8)
    workload = make_workload(lambda: block(x).detach(), ())
    return replace(workload, modules=(("block", block),))


def checked(workload: BuiltWorkload, call: Any) -> FormNumerics:
    """Of the eager form beside one that makes this call, while it is switched on."""
    on: list[Any] = []

    @contextmanager
    def ready() -> Iterator[None]:
        on.append(call)
        yield
        on.pop()

    forms = (eager_form(workload), Form("compiled", "cpu", lambda: on[-1](), ready))
    return check_outputs(workload, forms, 0, Silent())[0]["compiled"]


def test_a_fault_in_one_form_shows_beside_eager_and_the_reference(named: BuiltWorkload) -> None:
    sound = checked(named, named.call)
    assert (sound.reference_dtype, sound.reference_missing) == ("float64", None)
    assert sound.against_eager is not None and sound.against_reference is not None
    assert sound.against_eager.tensors[0].equal_share == 1
    assert 0 < (sound.against_reference.tensors[0].relative or 0) < 1e-6
    faulty = checked(named, lambda: named.call() * 1.01)  # type: ignore[operator]
    for difference in (faulty.against_eager, faulty.against_reference):
        assert difference is not None
        assert difference.tensors[0].relative == pytest.approx(0.01, rel=1e-3)


def test_random_calls_are_seeded_alike_and_what_still_differs_is_the_floor(named: BuiltWorkload) -> None:
    calls = iter(range(100))
    seeded, changing = checked(named, lambda: torch.rand(8)), checked(named, lambda: torch.ones(8) + next(calls))
    assert seeded.against_itself is not None and changing.against_itself is not None
    assert (seeded.against_itself.tensors[0].equal_share, changing.against_itself.tensors[0].max_abs) == (1, 1)


class Dropping(nn.Module):
    """Leaves out half of what a layer returns, and draws nothing in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(64, 64), nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return self.dropout(self.layer(x).relu())


@pytest.fixture
def dropping() -> BuiltWorkload:
    torch.manual_seed(0)
    module, x = Dropping(), torch.randn(32, 64)

    def call() -> object:
        with torch.no_grad():
            return module(x)

    return replace(make_workload(call, (CompileTarget("net", module),)), modules=(("net", module),))


def test_dropout_is_compared_in_code_that_draws_what_eager_draws(dropping: BuiltWorkload) -> None:
    forms = (eager_form(dropping), compiled_form(dropping))
    found, _ = check_outputs(dropping, forms, 0, Silent())
    eager, compiled = found["eager"], found["compiled"]
    assert compiled.drawn_as_eager and not eager.drawn_as_eager
    assert compiled.against_eager is not None and eager.against_another_seed is not None
    assert (compiled.against_eager.tensors[0].relative or 0.0) < 1e-6
    assert (eager.against_another_seed.tensors[0].relative or 0.0) > 0.5
    accuracy = judge_outputs(eager, compiled, same_work=True)
    assert accuracy is not None and accuracy.result in ("equal", "as_accurate")


def test_where_compiled_code_cannot_draw_what_eager_draws_its_outputs_are_random(
    dropping: BuiltWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_workload: BuiltWorkload, _instead: Any) -> Form:
        raise RuntimeError("no such code")

    compiled = Form("compiled", "cpu", lambda: (torch.rand(1), dropping.call())[1])  # type: ignore[operator]
    for name, missing in (("drawing_as_eager", lambda _settings: None), ("compiled_form", failing)):
        with monkeypatch.context() as patched:
            patched.setattr(output_check, name, missing)
            found, _ = check_outputs(dropping, (eager_form(dropping), compiled), 0, Silent())
        assert not found["compiled"].drawn_as_eager
        accuracy = judge_outputs(found["eager"], found["compiled"], same_work=True)
        assert accuracy is not None and accuracy.result == "random"


def test_nothing_is_compiled_anew_where_nothing_is_drawn_or_outputs_are_equal(
    dropping: BuiltWorkload, named: BuiltWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_check, "compiled_form", lambda *_: pytest.fail("compiled"))
    faulty = checked(named, lambda: named.call() * 1.01)  # type: ignore[operator]
    assert not faulty.drawn_as_eager and not checked(dropping, dropping.call).drawn_as_eager


def test_ranks_that_draw_nothing_call_what_those_call_that_do(named: BuiltWorkload) -> None:
    class Job(OneProcess):
        size = 2

        def most(self, *values: float) -> tuple[float, ...]:
            return tuple(1.0 for _ in values)

    found = check_outputs(named, (eager_form(named),), 0, Silent(), ranks=Job())[0]["eager"]
    assert found.against_another_seed is not None and found.against_another_seed.tensors[0].equal_share == 1
    assert found.reference_missing == ReferenceOfRanks()


def test_images_are_drawn_with_their_difference(named: BuiltWorkload) -> None:
    images = torch.rand(1, 3, 32, 32) / 2
    forms = (Form("eager", "cpu", lambda: images), Form("compiled", "cpu", lambda: images + 0.01))
    found, drawings = check_outputs(named, forms, 0, Silent())
    assert found["eager"].against_eager is None
    assert [each.kind for each in drawings["eager"]] == ["output"]
    assert [(each.kind, each.scale) for each in drawings["compiled"]] == [("output", 1.0), ("difference", 64.0)]


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
    found = check_outputs(workload, (eager_form(workload),), 0, Silent())[0]["eager"]
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
