from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.capture.conftest import make_workload

from tracekit.capture import failures
from tracekit.capture.compilation import compile_errors, watch_compilation
from tracekit.capture.forms import Form, compiled_form, eager_form
from tracekit.capture.warmup import MOST_CALLS, warm_up
from tracekit.errors import TracekitError
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload, CompileTarget


def test_a_form_is_called_until_two_calls_compile_nothing(workload: BuiltWorkload) -> None:
    warm = warm_up(eager_form(workload), Silent())
    assert (len(warm.wall_us), warm.compilation) == (2, None)
    form = compiled_form(workload)
    warm = warm_up(form, Silent())
    assert warm.compilation is not None
    assert (warm.compilation.graphs, warm.compilation.graph_breaks, len(warm.wall_us)) == (1, 0, 3)
    assert warm.compilation.seconds == pytest.approx(warm.wall_us[0] / 1e6)
    with watch_compilation() as watch:
        form.call()
    assert watch.compilations == 0


def test_graph_breaks_are_counted_and_allowed_without_fullgraph(block: Any) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = block(x)
        torch._dynamo.graph_break()
        return y * 2

    module = torch.nn.Module()
    module.forward = broken  # type: ignore[method-assign]
    x = torch.randn(4, 8)
    targets = (CompileTarget("broken", module),)
    warm = warm_up(compiled_form(make_workload(lambda: module(x), targets, fullgraph=False)), Silent())
    assert warm.compilation is not None
    assert warm.compilation.graph_breaks == 1
    assert warm.compilation.graphs == 2
    with pytest.raises(TracekitError, match="--no-fullgraph"):
        warm_up(compiled_form(make_workload(lambda: module(x), targets, fullgraph=True)), Silent())


@pytest.mark.parametrize("make", [eager_form, compiled_form])
def test_a_call_that_makes_torch_forget_what_it_compiled_is_refused(
    block: Any, make: Callable[[BuiltWorkload], Form]
) -> None:
    x = torch.randn(4, 8)

    def call() -> object:
        torch.compiler.reset()
        return block(x)

    form = make(make_workload(call, (CompileTarget("block", block),)))
    with pytest.raises(TracekitError, match=rf"a call of the {form.name} form calls torch\.compiler\.reset\(\)"):
        warm_up(form, Silent())


def test_a_form_that_never_stops_compiling_is_given_up_with_a_reason(block: Any) -> None:
    sizes = iter(range(2, 1000))

    def call() -> object:
        return block(torch.randn(next(sizes), 8))

    workload = make_workload(call, (CompileTarget("block", block),), dynamic=False)
    with (
        torch._dynamo.config.patch(recompile_limit=100),
        pytest.raises(TracekitError, match=f"{MOST_CALLS} equal calls"),
    ):
        warm_up(compiled_form(workload), Silent())


def test_a_switched_off_compiler_is_an_error_not_a_result(workload: BuiltWorkload) -> None:
    with torch._dynamo.config.patch(disable=True), pytest.raises(TracekitError, match="unset TORCH_COMPILE_DISABLE"):
        compiled_form(workload)


def test_compiling_nothing_is_an_error_not_a_result(block: Any) -> None:
    module = torch.nn.Module()
    module.forward = torch.compiler.disable(block.forward)  # type: ignore[method-assign]
    x = torch.randn(4, 8)
    form = compiled_form(make_workload(lambda: module(x), (CompileTarget("block", module),), fullgraph=False))
    with pytest.raises(TracekitError, match="compiled nothing"):
        warm_up(form, Silent())


@pytest.mark.parametrize(
    "name", ["callback.callback_handler", "register_start_callback", "remove_start_callback", "utils.counters"]
)
def test_a_torch_that_cannot_be_watched_is_an_error_that_names_those_that_can(
    name: str, workload: BuiltWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = compiled_form(workload)
    if name.startswith(("register", "remove")):
        from torch._dynamo import callback

        # A handler without the one method; Dynamo itself goes on with its own.
        both = ("register_start_callback", "remove_start_callback")
        left = {each: lambda _call: None for each in both if each != name}
        monkeypatch.setattr(callback, "callback_handler", types.SimpleNamespace(**left))
    else:
        monkeypatch.delattr(f"torch._dynamo.{name}")
    with pytest.raises(TracekitError, match=r"in no known way; tracekit knows 2\.9 to 2\.15"), watch_compilation():
        raise AssertionError("never watched")
    monkeypatch.undo()
    form.call()


def test_errors_that_this_torch_does_not_name_are_passed_on_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo import exc

    monkeypatch.delattr(exc, "TorchDynamoException")
    unsupported, failed = compile_errors()
    assert unsupported is exc.Unsupported
    assert not issubclass(ValueError, failed)
    with pytest.raises(ValueError, match="as it is"), failures.explained(make_workload(lambda: None, ()).settings):
        raise ValueError("as it is")
