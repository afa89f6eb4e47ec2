"""What the list says of each workload: inputs, parameters, memory, graph breaks."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tests.workloads.builds import build, nowhere  # noqa: E402

from tracekit.model.workload import NO_BREAKS, WorkloadInfo  # noqa: E402
from tracekit.workloads import registry  # noqa: E402
from tracekit.workloads.building import count_parameters  # noqa: E402
from tracekit.workloads.configured import shapes  # noqa: E402
from tracekit.workloads.one_forward import drawn_sizes  # noqa: E402
from tracekit.workloads.one_forward_table import ROWS  # noqa: E402
from tracekit.workloads.scopes import compile_targets, repeated_parts  # noqa: E402
from tracekit.workloads.sizes import ALLOWANCE_BYTES, GIB  # noqa: E402

of_each = pytest.mark.parametrize("info", registry.all_workloads(), ids=lambda info: info.name)
#: One graph, as the list says; of others `tests/cli/test_profile.py` counts the graphs of a run. The others are
#: nearly the code of one that is: detr and detr-resnet-101 of conditional-detr, maskformer of mask2former.
ONE_GRAPH = (*("mlp", "gpt", "conditional-detr", "mask2former", "beit", "resnet", "convnext", "deeplabv3-mobilenet"),)


@of_each
def test_parameters_are_counted_and_nothing_is_built_for_it(info: WorkloadInfo) -> None:
    modules = [module for _, module in nowhere(info.name).modules]
    assert count_parameters(*modules) == info.parameters
    assert all(p.device.type == "meta" for module in modules for p in module.parameters())


def test_the_heads_that_ranks_share_are_those_of_each_size() -> None:
    heads: dict[str, Callable[[Any], int]] = {
        "gpt": lambda one: one.width // importlib.import_module(registry.GPT.module).HEAD_WIDTH,
        "causal-lm": lambda one: one[2],
        "flux": lambda one: one.transformer["num_attention_heads"],
    }
    for name, count in heads.items():
        info = registry.find(name)
        sizes = importlib.import_module(info.module).ARCHITECTURES
        assert info.heads == {size: count(sizes[size]) for size in info.sizes}


@of_each
def test_the_blocks_that_repeat_hold_most_of_it(info: WorkloadInfo) -> None:
    # `comparison/commands.py` takes it for granted in runs that do not say.
    workload = nowhere(info.name)
    everything = {id(target.module) for target in compile_targets(workload, "all")}
    assert everything == {id(module) for _, module in workload.modules}
    blocks = count_parameters(*(target.module for target in compile_targets(workload, "regional")))
    assert blocks > 0.5 * (info.parameters or 0)
    assert repeated_parts(workload)


@of_each
def test_inputs_and_breaks_are_those_of_a_call_and_published_weights_are_named(info: WorkloadInfo) -> None:
    assert info.inputs and info.breaks
    assert (info.breaks == NO_BREAKS) == info.fullgraph
    assert bool(info.checkpoints) == ("pretrained" in info.takes)
    assert set(info.checkpoints) <= set(info.sizes)
    if info.name in ROWS and info.name != "mlp":
        row, model = ROWS[info.name], nowhere(info.name).modules[0][1]
        draw = importlib.import_module(info.module).draw
        assert info.inputs == shapes(draw(row, model, drawn_sizes(row, "full", model), 1, 0))


@of_each
def test_the_memory_is_no_less_than_the_weights_and_no_wild_guess(info: WorkloadInfo) -> None:
    for size, said_gib in info.memory_gib.items():
        parameters = count_parameters(*(module for _, module in nowhere(info.name, size).modules))
        # A training step holds gradients and AdamW's two moments beside the weights.
        need_gib = ((8 if info.name == "gpt" else 2) * parameters + ALLOWANCE_BYTES) / GIB
        assert need_gib - 0.02 <= said_gib < 3 * need_gib


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph_is_what_the_list_says_it_is(name: str) -> None:
    assert registry.find(name).fullgraph
    torch.compiler.reset()
    workload = build(name)
    # transformers hooks some models in their first call, under a lock that cannot be compiled.
    workload.call()
    for target in workload.targets:
        compiled = torch.compile(getattr(target.module, target.method), fullgraph=True, backend="eager")
        setattr(target.module, target.method, compiled)
    workload.call()
