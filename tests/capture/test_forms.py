from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.capture.conftest import make_settings, make_workload
from torch._inductor import config

from tracekit.capture import failures
from tracekit.capture.compilation import compile_errors, watch_compilation
from tracekit.capture.forms import Form, Switch, compile_options, compiled_form, eager_form
from tracekit.capture.warmup import MOST_CALLS, warm_up
from tracekit.errors import TracekitError
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload, CompileTarget


def test_a_form_that_is_ready_leaves_inductors_configuration_alone(workload: BuiltWorkload) -> None:
    """Changing it slows the calls that follow."""
    form = compiled_form(workload)
    warm_up(form, Silent())
    with form.ready():
        assert not config.cpp.enable_kernel_profile


def test_cpu_code_is_compiled_to_show_its_kernels_and_otherwise_as_its_mode_says() -> None:
    assert compile_options(make_settings(dynamic=False)) == {
        "fullgraph": True,
        "dynamic": False,
        "options": {"cpp.enable_kernel_profile": True},
    }
    graphs = compile_options(make_settings(mode="reduce-overhead"))
    assert "mode" not in graphs, "torch.compile takes a mode or options"
    assert graphs["options"] == {"triton.cudagraphs": True, "cpp.enable_kernel_profile": True}


def test_gpu_code_needs_no_options() -> None:
    assert compile_options(make_settings(device="cuda")) == {"fullgraph": True, "dynamic": None}
    assert compile_options(make_settings(device="cuda", mode="max-autotune"))["mode"] == "max-autotune"


def counting_backend(calls: list[str]) -> Any:
    def backend(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            calls.append("compiled")
            return graph.forward(*args)

        return run

    return backend


def test_a_module_runs_compiled_only_while_it_is_switched_on(block: Any) -> None:
    calls: list[str] = []
    switch = Switch(CompileTarget("block", block), {"backend": counting_backend(calls)})
    x = torch.randn(2, 8)
    eager = block(x)
    assert calls == []
    switch.on()
    assert torch.allclose(block(x), eager)
    assert calls == ["compiled"]
    switch.off()
    block(x)
    assert calls == ["compiled"]
    switch.on()
    block(x)
    assert calls == ["compiled", "compiled"]


def test_a_method_is_switched_without_touching_the_module_s_call(block: Any) -> None:
    calls: list[str] = []
    switch = Switch(CompileTarget("block", block, "decode"), {"backend": counting_backend(calls)})
    x = torch.randn(2, 8)
    eager = block.decode(x)
    switch.on()
    assert torch.allclose(block.decode(x), eager)
    block(x)
    assert calls == ["compiled"]
    switch.off()
    block.decode(x)
    assert calls == ["compiled"]
    assert "decode" not in block.__dict__


def test_torchs_own_containers_are_compiled_whole() -> None:
    graphs: list[str] = []
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))

    def backend(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        graphs.append(" ".join(str(node.target) for node in graph.graph.nodes))
        return graph.forward

    switch = Switch(CompileTarget("model", model), {"backend": backend, "fullgraph": True})
    x = torch.randn(2, 8)
    eager = model(x)
    switch.on()
    assert torch.allclose(model(x), eager)
    assert len(graphs) == 1
    assert graphs[0].count("linear") == 2 and "gelu" in graphs[0]
    switch.off()
    assert model._compiled_call_impl is None


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
