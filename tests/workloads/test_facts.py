"""What the list says of each workload: inputs, parameters, memory, graph breaks."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import NO_BREAKS, Request, WorkloadInfo  # noqa: E402
from tracekit.workloads import flux, registry  # noqa: E402
from tracekit.workloads.configured import shapes  # noqa: E402
from tracekit.workloads.one_forward import OneForward, placed_on  # noqa: E402
from tracekit.workloads.rehearsal import rehearse  # noqa: E402
from tracekit.workloads.scopes import build_nowhere, repeated_parts  # noqa: E402
from tracekit.workloads.sizes import ALLOWANCE_BYTES, GIB  # noqa: E402
from tracekit.workloads.weights import random_weights  # noqa: E402

#: Those with a call of their own; test_one_forward.py compiles the others.
OTHERS = ("flux", "flux-schnell", "vit", "causal-lm", "mlp")


def spec(info: WorkloadInfo) -> OneForward | None:
    module = importlib.import_module(info.module)
    return next((each for each in vars(module).values() if isinstance(each, OneForward)), None)


def model_of(info: WorkloadInfo) -> Any:
    """The largest size, on the meta device; Flux's four models as one list."""
    size, module, one = next(iter(info.sizes)), importlib.import_module(info.module), spec(info)
    with random_weights(torch.bfloat16, "meta", 0):
        if one is not None:
            return one.make(size)
        architecture = module.ARCHITECTURES[size]
        if info.name.startswith("flux"):
            parts = (flux._t5(architecture), flux._clip(architecture), flux._vae(architecture))
            return torch.nn.ModuleList((flux._transformer(architecture, guided=info.name == "flux"), *parts))
        return module._model(architecture)


@pytest.mark.parametrize("info", registry.all_workloads(), ids=lambda info: info.name)
def test_the_parameters_are_those_of_the_largest_size(info: WorkloadInfo) -> None:
    if info.name in ("mask2former", "maskformer"):
        pytest.importorskip("scipy")
    assert sum(p.numel() for p in model_of(info).parameters()) == info.parameters


@pytest.mark.parametrize("info", registry.all_workloads(), ids=lambda info: info.name)
def test_every_workload_of_the_list_has_blocks_that_repeat(info: WorkloadInfo) -> None:
    # `comparison/commands.py` takes it for granted in runs that do not say.
    if info.name in ("mask2former", "maskformer"):
        pytest.importorskip("scipy")
    workload = build_nowhere(registry.load_builder(info), Request(info.name), next(iter(info.sizes)))
    repeated = repeated_parts(workload)
    assert repeated
    if info.name == "vit":
        assert repeated == ("model.vit.layers.*",)


@pytest.mark.parametrize("info", registry.all_workloads(), ids=lambda info: info.name)
def test_inputs_and_breaks_are_said(info: WorkloadInfo) -> None:
    assert info.inputs
    assert info.breaks
    assert (info.breaks == NO_BREAKS) == info.fullgraph
    if info.name not in ("mask2former", "maskformer") and (one := spec(info)) is not None:
        assert info.inputs == shapes(one.inputs(next(iter(info.sizes)), 1, 0))


@pytest.mark.parametrize("info", registry.all_workloads(), ids=lambda info: info.name)
def test_published_weights_are_named_where_real_ones_can_be_had(info: WorkloadInfo) -> None:
    assert bool(info.checkpoints) == ("pretrained" in info.takes)
    assert set(info.checkpoints) <= set(info.sizes)
    # What the file of the model says it is made after.
    said = importlib.import_module(info.module).__doc__ or ""
    assert all(each.rpartition("-7B")[0] in said or each in said for each in info.checkpoints.values())


@pytest.mark.slow
@pytest.mark.parametrize("info", registry.all_workloads(), ids=lambda info: info.name)
def test_the_memory_is_no_less_than_weights_and_one_call_and_no_wild_guess(info: WorkloadInfo) -> None:
    if info.name in ("mask2former", "maskformer"):
        pytest.importorskip("scipy")
    one = spec(info)
    if one is None:
        weights = sum(p.nbytes for p in model_of(info).parameters())
        assert info.memory_gib[next(iter(info.sizes))] * GIB > weights
        return
    for size, said_gib in info.memory_gib.items():
        with random_weights(torch.bfloat16, "meta", 0):
            model = one.make(size).eval()
        found = rehearse(model, placed_on(one.inputs(size, 1, 0), "meta", torch.bfloat16))
        assert found.activations_bytes is not None
        need_gib = (found.weights_bytes + found.activations_bytes + ALLOWANCE_BYTES) / GIB
        assert need_gib - 0.01 <= said_gib < 3 * need_gib


@pytest.mark.parametrize("name", OTHERS)
def test_one_graph_is_what_the_list_says_it_is(name: str) -> None:
    torch.compiler.reset()
    workload = registry.load_builder(registry.find(name))(Request(name, scope=None), "tiny", "cpu", Silent())
    for target in workload.targets:
        compiled = torch.compile(getattr(target.module, target.method), fullgraph=True, backend="eager")
        setattr(target.module, target.method, compiled)
    workload.call()
