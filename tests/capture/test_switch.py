from __future__ import annotations

from typing import Any

import torch

from tracekit.capture.forms import Switch
from tracekit.model.workload import CompileTarget


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
