"""What forms return, with a fault planted in one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.capture.conftest import Block, make_workload  # noqa: E402

from tracekit.capture.forms import Form, eager_form  # noqa: E402
from tracekit.capture.output_check import check_outputs, with_files  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import BuiltWorkload  # noqa: E402


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


def test_each_form_stands_beside_itself_the_reference_and_eager(named: BuiltWorkload) -> None:
    checked = check_outputs(named, (eager_form(named), other_form(named.call)), 0, Silent())
    eager, compiled = checked["eager"].numerics, checked["compiled"].numerics
    assert eager.against_eager is None
    assert (eager.reference_dtype, eager.reference_missing) == ("float64", None)
    assert compiled.against_eager is not None
    assert compiled.against_eager.tensors[0].equal_share == 1
    assert compiled.against_reference is not None
    assert 0 < (compiled.against_reference.tensors[0].relative or 0) < 1e-6


def test_a_fault_in_one_form_shows_beside_eager_and_the_reference(named: BuiltWorkload) -> None:
    faulty = other_form(lambda: named.call() * 1.01)  # type: ignore[operator]
    numerics = check_outputs(named, (eager_form(named), faulty), 0, Silent())["compiled"].numerics
    for difference in (numerics.against_eager, numerics.against_reference):
        assert difference is not None
        assert difference.tensors[0].relative == pytest.approx(0.01, rel=1e-3)


def test_random_calls_are_seeded_alike_and_what_still_differs_is_the_floor(named: BuiltWorkload) -> None:
    calls = iter(range(100))
    seeded = check_outputs(replace(named, call=lambda: torch.rand(8)), (eager_form(named),), 0, Silent())
    assert seeded["eager"].numerics.against_itself.tensors[0].equal_share == 1  # type: ignore[union-attr]
    restless = other_form(lambda: torch.ones(8) + next(calls))
    found = check_outputs(named, (restless,), 0, Silent())["compiled"].numerics
    assert found.against_eager is None
    assert found.against_itself is not None
    assert found.against_itself.tensors[0].max_abs == 1


def test_calls_are_made_inside_the_form_s_block(named: BuiltWorkload) -> None:
    from collections.abc import Iterator
    from contextlib import contextmanager

    events: list[str] = []

    @contextmanager
    def ready() -> Iterator[None]:
        events.append("on")
        yield
        events.append("off")

    def call() -> Any:
        events.append("call")
        return torch.ones(1)

    check_outputs(named, (Form("compiled", "cpu", call, ready),), 0, Silent())
    assert events == ["on", "call", "off"] * 2


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
