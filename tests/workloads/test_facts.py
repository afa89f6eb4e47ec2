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
from tracekit.workloads.one_forward import drawn_sizes, placed_on  # noqa: E402
from tracekit.workloads.one_forward_table import ROWS  # noqa: E402
from tracekit.workloads.rehearsal import rehearse  # noqa: E402
from tracekit.workloads.scopes import build_nowhere, repeated_parts  # noqa: E402
from tracekit.workloads.sizes import ALLOWANCE_BYTES, GIB  # noqa: E402
from tracekit.workloads.weights import random_weights  # noqa: E402

#: Those that the list says are one graph.
ONE_GRAPH = [
    pytest.param(info.name, marks=pytest.mark.slow) if info.name in ROWS else info.name
    for info in registry.all_workloads()
    if info.fullgraph
]


def model_of(info: WorkloadInfo, size: str | None = None) -> Any:
    """The largest size, or this one, on the meta device; Flux's four models as one list."""
    size, module = size or next(iter(info.sizes)), importlib.import_module(info.module)
    with random_weights(torch.bfloat16, "meta", 0):
        if info.name in ROWS:
            return module.FAMILY.make(ROWS[info.name], size)
        architecture = module.ARCHITECTURES[size]
        if info.name.startswith("flux"):
            parts = (flux._t5(architecture), flux._clip(architecture), flux._vae(architecture))
            return torch.nn.ModuleList((flux._transformer(architecture, guided=info.name == "flux"), *parts))
        return module._model(architecture)


def drawn(info: WorkloadInfo, model: Any, size: str) -> dict[str, Any]:
    """The arguments of one forward of a row's model."""
    row = ROWS[info.name]
    found: dict[str, Any] = importlib.import_module(info.module).FAMILY.draw(
        row, model, drawn_sizes(row, size, model), 1, 0
    )
    return found


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
    if info.name in ROWS and info.name != "mlp" and not ROWS[info.name].needs:
        assert info.inputs == shapes(drawn(info, model_of(info), next(iter(info.sizes))))


@pytest.mark.parametrize("info", registry.all_workloads(), ids=lambda info: info.name)
def test_published_weights_are_named_where_real_ones_can_be_had(info: WorkloadInfo) -> None:
    assert bool(info.checkpoints) == ("pretrained" in info.takes)
    assert set(info.checkpoints) <= set(info.sizes)
    # What the file of the model says it is made after; a row of the table names it itself.
    if info.name not in ROWS:
        said = importlib.import_module(info.module).__doc__ or ""
        assert all(each.rpartition("-7B")[0] in said or each in said for each in info.checkpoints.values())


@pytest.mark.slow
@pytest.mark.parametrize("info", registry.all_workloads(), ids=lambda info: info.name)
def test_the_memory_is_no_less_than_weights_and_one_call_and_no_wild_guess(info: WorkloadInfo) -> None:
    if info.name in ("mask2former", "maskformer"):
        pytest.importorskip("scipy")
    if info.name not in ROWS:
        weights = sum(p.nbytes for p in model_of(info).parameters())
        assert info.memory_gib[next(iter(info.sizes))] * GIB > weights
        return
    for size, said_gib in info.memory_gib.items():
        model = model_of(info, size).eval()
        found = rehearse(model, placed_on(drawn(info, model, size), "meta", torch.bfloat16))
        assert found.activations_bytes is not None
        need_gib = (found.weights_bytes + found.activations_bytes + ALLOWANCE_BYTES) / GIB
        assert need_gib - 0.01 <= said_gib < 3 * need_gib


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph_is_what_the_list_says_it_is(name: str) -> None:
    for package in ROWS[name].needs if name in ROWS else ():
        pytest.importorskip(package)
    torch.compiler.reset()
    workload = registry.load_builder(registry.find(name))(Request(name, scope=None), "tiny", "cpu", Silent())
    # transformers hooks some models in their first call, under a lock that cannot be compiled.
    workload.call()
    for target in workload.targets:
        compiled = torch.compile(getattr(target.module, target.method), fullgraph=True, backend="eager")
        setattr(target.module, target.method, compiled)
    workload.call()
