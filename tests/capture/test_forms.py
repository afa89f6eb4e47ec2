from __future__ import annotations

from typing import Any

import torch
from tests.capture.conftest import make_settings
from torch._inductor import config

from tracekit.capture.forms import Switch, compile_options, compiled_form
from tracekit.capture.warmup import warm_up
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
