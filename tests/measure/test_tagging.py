"""Operators of the eager form, with module and line."""

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.provenance_models import Block, directly_in, eager_ops, mlp
from torch.utils.flop_counter import FlopCounterMode

from tracekit.measure import tagging
from tracekit.measure.source_location import ModuleNames, is_torch, portable
from tracekit.model.provenance import EagerOp


def line_of(owner: Any, text: str) -> str:
    lines, first = inspect.getsourcelines(owner)
    return f"tests/measure/provenance_models.py:{first + next(i for i, line in enumerate(lines) if text in line)}"


def named(ops: tuple[EagerOp, ...], name: str) -> list[EagerOp]:
    return [op for op in ops if op.name == name]


def tagged(model: Any, call: Any) -> tuple[EagerOp, ...]:
    return eager_ops(ModuleNames([("model", model)]), call).ops


def test_each_operator_has_its_module_line_and_sizes() -> None:
    ops = tagged(*mlp())
    gelu = named(ops, "aten.gelu.default")
    assert [op.module for op in gelu] == ["model.blocks.0", "model.blocks.1", "model.blocks.2"]
    assert {op.line for op in gelu} == {line_of(Block.forward, "gelu(")}
    assert {(op.outputs[0].sizes, op.outputs[0].dtype) for op in gelu} == {((4, 32), "float32")}
    assert {op.bytes for op in gelu} == {2 * 4 * 32 * 4}
    norm = named(ops, "aten.native_layer_norm.default")[0]
    assert (norm.module, norm.line) == ("model.blocks.0.norm", line_of(Block.forward, "self.norm(x)"))
    assert [output.sizes for output in norm.outputs] == [(4, 16), (4, 1), (4, 1)]


def test_floating_point_operations_are_those_torch_counts() -> None:
    model, call = mlp()
    before, ops = call(), tagged(model, call)
    with FlopCounterMode(display=False) as counter:
        after = call()
    assert sum(op.flops or 0 for op in ops) == counter.get_total_flops() > 0
    assert torch.equal(before, after), "tagging changes neither the model nor its output"  # type: ignore[arg-type]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert {op.flops for op in named(ops, "aten.gelu.default")} == {None}


def test_an_element_that_stands_for_many_is_one_in_memory() -> None:
    row, whole = torch.ones(1, 8), torch.ones(4, 8)
    empty, sparse = torch.ones(0, 8), torch.eye(4).to_sparse()
    ops = eager_ops(ModuleNames([]), lambda: (row.expand(4, 8).add(whole), empty.sin(), sparse.neg())).ops
    found = [named(ops, name)[0].bytes for name in ("aten.add.Tensor", "aten.sin.default", "aten.neg.default")]
    assert found == [4 * (8 + 32 + 32), 0, 4 * 32]
    assert {op.module for op in ops} == {""}, "outside of every known module"


def test_every_operator_s_span_holds_it_in_a_recording(tmp_path: Path) -> None:
    model, call = mlp()
    ops = eager_ops(ModuleNames([("model", model)]), call, tmp_path / "raw.json").ops
    for number, op in enumerate(ops):
        held = directly_in(tmp_path / "raw.json", tagging.TAG.format(number))
        assert held[0] == "aten::" + op.name.split(".")[1]


def test_without_torch_s_private_names_the_public_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._C, "_profiler", None)
    monkeypatch.delattr(torch._C, "_current_autograd_node")
    monkeypatch.delattr(torch.autograd, "_get_sequence_nr", raising=False)
    assert len(named(tagged(*mlp()), "aten.gelu.default")) == 3


def test_no_folder_of_the_machine_is_told_and_torch_s_own_lines_are_never_the_user_s() -> None:
    library = "/opt/venv/lib/python3.11/site-packages/diffusers/models/attention.py"
    found = [portable(file) for file in (library, "/somewhere/model.py", __file__)]
    assert found == ["diffusers/models/attention.py", "model.py", "tests/measure/test_tagging.py"]
    files = ("/another/site-packages/torch/nn/functional.py", "<eval_with_key>.12", torch.nn.functional.__file__)
    assert all(map(is_torch, files))
    assert not is_torch("/another/site-packages/torchvision/models/resnet.py")
