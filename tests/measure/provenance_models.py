"""Small models, and what provenance tells of them."""

import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tracekit.measure.compilation import recording_options
from tracekit.measure.forms import Form, Switch, switched_on
from tracekit.measure.provenance import Collection, collected
from tracekit.measure.source_location import ModuleNames
from tracekit.measure.tagging import tag_eager, trace_calls
from tracekit.model.progress import Silent
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.workload import CompileTarget

Asked = tuple[EagerOps, CompiledSites]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.fc1 = nn.Linear(16, 32)
        self.fc2 = nn.Linear(32, 16)
        self.gate = nn.Parameter(torch.randn(16))

    def forward(self, x: Any) -> Any:
        h = self.fc1(self.norm(x))
        h = nn.functional.gelu(h, approximate="tanh")
        h = self.fc2(h)
        return x + self.gate.tanh() * h


class Mlp(nn.Module):
    """Compiled whole it launches fifteen times; its blocks share one graph where each is compiled by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(x).softmax(-1) * 2 + 1


class Layer(nn.Module):
    """One fused kernel, in C++ that compiles once for all graphs it is in."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        return self.fc(x).relu() + 1

    decode = forward


class Stack(nn.Module):
    def __init__(self, *, broken: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.broken = broken

    def forward(self, x: Any) -> Any:
        x = self.layers[0](x)
        if self.broken:
            torch._dynamo.graph_break()
        return self.layers[1](x)


class ThreeAlike(nn.Module):
    """Equal operators on one line of one module, told apart by nothing but their order."""

    def forward(self, x: Any, y: Any, z: Any) -> Any:
        a, b, c = x.sin(), y.sin(), z.sin()
        p, q = (a * 2).relu(), (b * 3).relu()
        return p.sum() + q.sum() + (c * 4).sum()


def called(model: nn.Module, *inputs: Any) -> Callable[[], object]:
    """A call of the model without gradients, with an input of four rows unless others are given."""
    inputs = inputs or (torch.randn(4, 16),)

    def call() -> object:
        with torch.no_grad():
            return model(*inputs)

    return call


def mlp() -> tuple[Mlp, Callable[[], object]]:
    model = Mlp().eval()
    return model, called(model)


def parts_of(model: nn.Module, name: str) -> list[CompileTarget]:
    """The parts in one list of the model, each to be compiled by itself."""
    return [CompileTarget(f"model.{name}.{i}", each) for i, each in enumerate(getattr(model, name))]


def eager_ops(names: ModuleNames, call: Callable[[], object], raw: Path | None = None) -> EagerOps:
    with tempfile.TemporaryDirectory() as folder:
        return tag_eager(Form("eager", "cpu", call), names, raw or Path(folder, "raw.json"), Silent())


def traced(call: Callable[[], object], collection: Collection, raw: Path | None = None) -> CompiledSites:
    with tempfile.TemporaryDirectory() as folder:
        return trace_calls(Form("compiled", "cpu", call), collection, raw or Path(folder, "raw.json"), Silent())


def directly_in(raw: Path, name: str) -> list[str]:
    """What a recording has directly in the span whose name begins so, in order."""
    spans = [each for each in json.loads(raw.read_text())["traceEvents"] if each.get("ph") == "X"]
    spans.sort(key=lambda each: (each["ts"], -each["dur"]))
    around = next(each for each in spans if each["name"].startswith(name) and each["cat"] != "gpu_user_annotation")
    found, until = [], around["ts"]
    for each in spans[spans.index(around) + 1 :]:
        if until <= each["ts"] < around["ts"] + around["dur"] and each["tid"] == around["tid"]:
            found.append(each["name"])
            until = each["ts"] + each["dur"]
    return found


def compiled_sites(
    names: ModuleNames,
    targets: Iterable[CompileTarget],
    call: Callable[[], object],
    raw: Path | None = None,
    **options: Any,
) -> CompiledSites:
    """What is told of `call` with the targets compiled."""
    torch.compiler.reset()
    # Set as a run asks torch.compile to set Inductor for what it compiles.
    switches = tuple(Switch(target, {**options, "options": recording_options("cpu")}) for target in targets)
    with switched_on(switches):
        with collected(names) as collection:
            call()
            call()
        return traced(call, collection, raw)


def asked(model: nn.Module, call: Callable[[], object], targets: Iterable[CompileTarget] = (), **options: Any) -> Asked:
    """Both forms of a model that is called `model`, compiled as a whole unless targets are named."""
    targets = tuple(targets) or (CompileTarget("model", model),)
    names = ModuleNames([("model", model)], targets)
    return eager_ops(names, call), compiled_sites(names, targets, call, **options)
