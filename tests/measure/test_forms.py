"""Forms that are switched on and off, and warmed up."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.measure.conftest import make_settings, make_workload
from torch._inductor import config
from torch._inductor.utils import fresh_cache

from tracekit.errors import NothingCompiledError, TracekitError
from tracekit.measure.compilation import watch_compilation
from tracekit.measure.forms import MOST_CALLS, Form, Switch, compile_options, compiled_form, eager_form, warm_up
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
    with form.ready():
        assert not config.cpp.enable_kernel_profile, "changing Inductor's configuration slows the calls that follow"


@pytest.mark.usefixtures("without_kernels")
def test_a_graph_that_trains_is_from_the_cache_where_its_backward_is_too(block: Any) -> None:
    workload = make_workload(lambda: block(torch.ones(2, 8)).sum().backward(), (CompileTarget("block", block),))
    held = []
    with fresh_cache():
        for _ in range(2):
            torch.compiler.reset()
            warm = warm_up(compiled_form(workload), Silent())
            assert warm.compilation is not None
            held.append((warm.compilation.cache_hits, warm.compilation.graphs))
    assert held == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        # CPU code is compiled to show its kernels; torch.compile takes a mode or options.
        ({"dynamic": False}, {"dynamic": False, "options": {"cpp.enable_kernel_profile": True}}),
        (
            {"mode": "reduce-overhead"},
            {"dynamic": None, "options": {"triton.cudagraphs": True, "cpp.enable_kernel_profile": True}},
        ),
        ({"device": "cuda"}, {"dynamic": None}),
        ({"device": "cuda", "mode": "max-autotune"}, {"dynamic": None, "mode": "max-autotune"}),
    ],
)
def test_code_is_compiled_as_its_mode_says(settings: dict[str, Any], options: dict[str, Any]) -> None:
    assert compile_options(make_settings(**settings)) == {"fullgraph": True, **options}


def counting_backend(graphs: list[str], calls: list[str]) -> Any:
    def backend(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        graphs.append(" ".join(str(node.target) for node in graph.graph.nodes))

        def run(*args: Any) -> Any:
            calls.append("compiled")
            return graph.forward(*args)

        return run

    return backend


@pytest.mark.parametrize("method", ["forward", "decode"])
def test_a_method_runs_compiled_only_while_it_is_switched_on(block: Any, method: str) -> None:
    calls: list[str] = []
    switch = Switch(CompileTarget("block", block, method), {"backend": counting_backend([], calls)})
    called = {"forward": lambda: block(x), "decode": lambda: block.decode(x)}
    call, x = called.pop(method), torch.randn(2, 8)
    (other,) = called.values()
    eager = call()
    assert calls == []
    for on in (1, 2):
        switch.on()
        assert torch.allclose(call(), eager)
        other()
        assert len(calls) == on
        switch.off()
        call()
        assert len(calls) == on
    assert "decode" not in block.__dict__


def test_torchs_own_containers_are_compiled_whole() -> None:
    graphs: list[str] = []
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))
    switch = Switch(CompileTarget("model", model), {"backend": counting_backend(graphs, []), "fullgraph": True})
    x = torch.randn(2, 8)
    eager = model(x)
    switch.on()
    assert torch.allclose(model(x), eager)
    (graph,) = graphs
    assert graph.count("linear") == 2 and "gelu" in graph
    switch.off()
    assert model._compiled_call_impl is None


@pytest.mark.usefixtures("dynamo_alone")
@pytest.mark.parametrize("make", [eager_form, compiled_form])
def test_a_call_that_makes_torch_forget_what_it_compiled_is_refused(
    block: Any, make: Callable[[BuiltWorkload], Form]
) -> None:
    x = torch.randn(4, 8)

    def call() -> object:
        torch.compiler.reset()
        return block(x)

    form = make(make_workload(call, (CompileTarget("block", block),)))
    with pytest.raises(TracekitError, match=rf"{form.name} .*torch\.compiler\.reset\(\)"):
        warm_up(form, Silent())


@pytest.mark.usefixtures("dynamo_alone")
def test_a_form_that_never_stops_compiling_is_given_up_with_a_reason(block: Any) -> None:
    sizes = iter(range(2, 1000))
    targets = (CompileTarget("block", block),)
    workload = make_workload(lambda: block(torch.randn(next(sizes), 8)), targets, dynamic=False)
    with (
        torch._dynamo.config.patch(recompile_limit=100),
        pytest.raises(TracekitError, match=f"{MOST_CALLS} equal calls"),
    ):
        warm_up(compiled_form(workload), Silent())


def test_a_switched_off_compiler_is_an_error_not_a_result(workload: BuiltWorkload) -> None:
    with torch._dynamo.config.patch(disable=True), pytest.raises(TracekitError, match="unset TORCH_COMPILE_DISABLE"):
        compiled_form(workload)


def test_compiling_nothing_is_an_error_of_its_own(block: Any) -> None:
    module = torch.nn.Module()
    module.forward = torch.compiler.disable(block.forward)  # type: ignore[method-assign]
    x = torch.randn(4, 8)
    form = compiled_form(make_workload(lambda: module(x), (CompileTarget("block", module),), fullgraph=False))
    with pytest.raises(NothingCompiledError):
        warm_up(form, Silent())
