"""What Inductor tells of its launches, and whether it leads back to the eager operators: with the real compiler."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import re
import subprocess
import sys
import time
import types
import weakref
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.capture import provenance_models as models  # noqa: E402

from tracekit.capture import provenance  # noqa: E402
from tracekit.capture.compilation import read_counters  # noqa: E402
from tracekit.capture.compiled_graph import launch_sites  # noqa: E402
from tracekit.capture.forms import (  # noqa: E402
    Form,
    Switch,
    switched_on,
)
from tracekit.capture.provenance import missing_provenance  # noqa: E402
from tracekit.capture.source_location import ModuleNames  # noqa: E402
from tracekit.capture.tagging import trace_calls  # noqa: E402
from tracekit.comparison.matching.launch_site_operators import Join, join_operators  # noqa: E402
from tracekit.model.note import Noted  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.provenance import CompiledSites, EagerOps, GraphCall, GraphNode  # noqa: E402
from tracekit.model.workload import CompileTarget  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield


def all_exact(join: Join) -> bool:
    return all(each.exact for each in join.joined) and not join.unmatched and not join.unexplained


@pytest.mark.parametrize("model", ["mlp", "three_alike"])
def test_every_launch_site_leads_to_its_eager_operators(model: str) -> None:
    eager, compiled = models.asked(*getattr(models, model)())
    join = join_operators(eager, compiled)
    assert all_exact(join), join
    assert join.wrong_sizes == 0
    assert not compiled.noted
    (graph,) = compiled.graphs
    assert len(graph.sites) == {"mlp": 15}.get(model, len(graph.sites))
    assert all(site.nodes for site in graph.sites)


@pytest.mark.slow
def test_every_operator_of_a_vit_leads_to_its_launches() -> None:
    eager, compiled = models.asked(*models.vit())
    join = join_operators(eager, compiled)
    assert len(join.joined) == 30
    assert all(each.exact and each.sites for each in join.joined)
    assert not join.unmatched
    # Under some versions of torch the model's library builds an attention mask while it is traced, and only then.
    graph = compiled.graphs[0]
    for each in join.unexplained:
        assert "arange" in graph.sites[each.site[1]].kernel


def test_a_fused_kernel_names_the_operators_lines_and_modules_it_covers() -> None:
    eager, compiled = models.asked(*models.mlp())
    join = join_operators(eager, compiled)
    last = max(site for each in join.joined for site in each.sites)
    inside = [eager.ops[each.op] for each in join.joined if last in each.sites]
    assert [op.name for op in inside] == ["aten._softmax.default", "aten.mul.Tensor", "aten.add.Tensor"]
    assert {op.module for op in inside} == {"model"}
    assert len({op.line for op in inside}) == 1


def test_sites_are_in_the_order_in_which_they_run() -> None:
    from torch.profiler import ProfilerActivity, profile

    model, call = models.mlp()
    target = CompileTarget("model", model)
    runs: list[list[str]] = []

    def recorded() -> object:
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            out = call()
        regions = [e for e in profiler.events() or () if e.name.startswith("## Call CompiledFxGraph")]
        runs.extend([child.name for child in region.cpu_children] for region in regions)
        return out

    compiled = models.compiled_sites(ModuleNames([("model", model)]), (target,), recorded)
    expected = [site.kernel.replace("extern_kernels.", "aten::") for site in compiled.graphs[0].sites]
    # Fused functions are recorded with the number of their graph before their name.
    ran = [re.sub(r"^graph_\d+_", "", name) for name in runs[-1]]
    assert [name for name in ran if name in expected] == expected


@pytest.mark.parametrize("model", ["three_alike", "mlp"])
def test_sizes_that_the_join_does_not_use_agree_and_would_not_if_it_were_wrong(model: str) -> None:
    eager, compiled = models.asked(*getattr(models, model)())
    assert join_operators(eager, compiled).wrong_sizes == 0
    shifted = [op.outputs for op in eager.ops]
    shifted = shifted[7:] + shifted[:7]
    others = tuple(dataclasses.replace(op, outputs=outputs) for op, outputs in zip(eager.ops, shifted, strict=True))
    wrong = join_operators(dataclasses.replace(eager, ops=others), compiled)
    assert wrong.wrong_sizes > len(wrong.joined) / 3


def test_equal_operators_of_one_line_swapped_are_noticed_by_their_sizes() -> None:
    eager, compiled = models.asked(*models.three_alike())
    sines = [i for i, op in enumerate(eager.ops) if op.name == "aten.sin.default"]
    assert len({(eager.ops[i].module, eager.ops[i].line) for i in sines}) == 1
    ops = [*eager.ops]
    ops[sines[0]], ops[sines[1]] = ops[sines[1]], ops[sines[0]]
    join = join_operators(dataclasses.replace(eager, ops=tuple(ops)), compiled)
    assert join.wrong_sizes == 2
    assert [each.exact for each in join.joined if each.op in sines[:2]] == [False, False]


@pytest.mark.slow
def test_graph_breaks_make_several_graphs_that_are_told_apart() -> None:
    eager, compiled = models.asked(*models.broken_in_two(), fullgraph=False)
    assert [call.module for call in compiled.calls] == ["model", "model"]
    assert [call.graph for call in compiled.calls] == [0, 1]
    assert all_exact(join_operators(eager, compiled))


def test_one_graph_for_equal_blocks_is_led_back_to_the_block_it_runs_for() -> None:
    model, call = models.mlp()
    assert isinstance(model, models.Mlp)
    targets = [CompileTarget(f"model.blocks.{i}", block) for i, block in enumerate(model.blocks)]
    eager, compiled = models.asked(model, call, targets)
    assert [each.module for each in compiled.calls] == ["model.blocks.0", "model.blocks.1", "model.blocks.2"]
    assert len(compiled.graphs) == 1
    join = join_operators(eager, compiled)
    assert all_exact(join)
    for each in join.joined:
        assert {compiled.calls[number].module for number, _ in each.sites} == {
            ".".join(eager.ops[each.op].module.split(".")[:3])
        }


def test_a_graph_that_runs_twice_in_a_step_is_led_back_call_by_call() -> None:
    model, once = models.mlp()

    def twice() -> object:
        return once(), once()

    eager, compiled = models.asked(model, twice)
    join = join_operators(eager, compiled)
    assert all_exact(join)
    by_call = Counter(number for each in join.joined for number, _ in each.sites)
    assert by_call[0] == by_call[1] > 20
    first = [each.op for each in join.joined if any(number == 0 for number, _ in each.sites)]
    second = [each.op for each in join.joined if any(number == 1 for number, _ in each.sites)]
    assert max(first) < min(second)


@pytest.mark.slow
def test_recompiled_variants_are_graphs_of_their_own() -> None:
    model = models.Mlp().eval()
    small, large = torch.randn(2, 16), torch.randn(6, 16)

    def call() -> object:
        with torch.no_grad():
            return model(small), model(large)

    eager, compiled = models.asked(model, call, dynamic=False)
    assert [each.graph for each in compiled.calls] == [0, 1]
    join = join_operators(eager, compiled)
    assert all_exact(join)
    assert join.wrong_sizes == 0


def test_symbolic_sizes_are_unknown_not_wrong() -> None:
    model = models.Mlp().eval()
    x = torch.randn(6, 16)

    def call() -> object:
        with torch.no_grad():
            return model(x)

    eager, compiled = models.asked(model, call, dynamic=True)
    sizes = {output.sizes for node in compiled.graphs[0].nodes for output in node.outputs}
    assert (None, 32) in sizes
    assert join_operators(eager, compiled).wrong_sizes == 0


def test_several_components_and_methods_keep_their_names() -> None:
    first, second = models.Mlp(1).eval(), models.Mlp(2).eval()
    x = torch.randn(4, 16)
    targets = (CompileTarget("encoder", first), CompileTarget("vae", second, "decode"))
    names = ModuleNames([("encoder", first), ("vae", second)], targets)

    def call() -> object:
        with torch.no_grad():
            first(x)
            return second.decode(x)

    eager, compiled = models.eager_ops(names, call), models.compiled_sites(names, targets, call)
    assert [each.module for each in compiled.calls] == ["encoder", "vae"]
    assert all_exact(join_operators(eager, compiled))


@pytest.mark.slow
def test_backward_graphs_lead_to_backward_operators() -> None:
    model = models.Mlp(2)
    x = torch.randn(4, 16)
    eager, compiled = models.asked(model, lambda: model(x).sum().backward())
    assert [graph.is_backward for graph in compiled.graphs] == [False, True]
    assert compiled.calls == (GraphCall(0, "model"), GraphCall(1, "model"))
    join = join_operators(eager, compiled)
    backward = [each for each in join.joined if eager.ops[each.op].backward]
    products = [each for each in backward if eager.ops[each.op].name == "aten.mm.default"]
    assert len(products) == 10
    assert all(each.exact and each.sites for each in products)
    assert all(number == 1 for each in backward for number, _ in each.sites)
    assert {eager.ops[each.op].module for each in backward if each.exact} >= {
        "model",
        "model.head",
        "model.blocks.1.fc2",
    }


@pytest.mark.slow
def test_backward_graphs_of_equal_blocks_are_led_back_to_their_block() -> None:
    model = models.Mlp(3)
    x = torch.randn(4, 16)
    targets = [CompileTarget(f"model.blocks.{i}", block) for i, block in enumerate(model.blocks)]
    eager, compiled = models.asked(model, lambda: model(x).sum().backward(), targets)
    called = [call.module for call in compiled.calls if call.graph and compiled.graphs[call.graph].is_backward]
    assert called == ["model.blocks.2", "model.blocks.1", "model.blocks.0"]
    for each in join_operators(eager, compiled).joined:
        blocks = {compiled.calls[number].module for number, _ in each.sites}
        assert len(blocks) <= 1
        assert all(eager.ops[each.op].module.startswith(str(block)) for block in blocks)


HIT = """
import dataclasses, json, sys
import torch
from tests.capture import provenance_models as models
torch.manual_seed(0)
eager, compiled = models.asked(*models.mlp())
from tracekit.comparison.matching.launch_site_operators import join_operators
from torch._dynamo.utils import counters
join = join_operators(eager, compiled)
told = [(each.op, each.sites, each.exact) for each in join.joined]
print(json.dumps({"hits": counters["inductor"]["fxgraph_cache_hit"], "told": told}))
"""


def in_a_process_of_its_own(code: str, folder: Path) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TORCHINDUCTOR_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(found.stdout.splitlines()[-1])


PLAIN = """
import torch
from tests.capture import provenance_models as models
torch.manual_seed(0)
model, call = models.mlp()
with models.recording_settings("cpu"):
    model.compile()
    call()
print("0")
"""


@pytest.fixture(scope="module")
def asked_twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """What two processes are told, one after the other, whose cache was filled without provenance before."""
    folder = tmp_path_factory.mktemp("filled")
    in_a_process_of_its_own(PLAIN, folder)
    return in_a_process_of_its_own(HIT, folder), in_a_process_of_its_own(HIT, folder)


@pytest.mark.slow
def test_a_cache_that_was_filled_without_provenance_is_not_used(asked_twice: tuple[Any, Any]) -> None:
    found, _ = asked_twice
    assert found["hits"] == 0
    assert len(found["told"]) == 25


@pytest.mark.slow
def test_graphs_that_come_from_the_cache_bring_their_provenance(asked_twice: tuple[Any, Any]) -> None:
    first, second = asked_twice
    assert (first["hits"], second["hits"]) == (0, 1)
    assert second["told"] == first["told"]
    assert len(first["told"]) == 25


def test_equal_graphs_of_other_lines_have_the_lines_of_their_own() -> None:
    def first(x: Any) -> Any:
        return (x.sin() + 1).cos()

    def second(x: Any) -> Any:
        return (x.sin() + 1).cos()

    x = torch.randn(8)
    told = []
    for function in (first, second):
        module = torch.nn.Module()
        module.forward = function  # type: ignore[method-assign]
        eager, compiled = models.asked(module, lambda module=module: module(x))
        assert all_exact(join_operators(eager, compiled))
        told.append({node.line for node in compiled.graphs[0].nodes})
    assert told[0].isdisjoint(told[1])


@pytest.mark.slow
def test_without_caches_graphs_are_named_apart() -> None:
    from torch._inductor import config

    with config.patch(force_disable_caches=True):
        _eager, compiled = models.asked(*models.broken_in_two(), fullgraph=False)
    assert len({graph.key for graph in compiled.graphs}) == 2
    assert "None" not in {graph.key for graph in compiled.graphs}


def test_nothing_of_it_remains_in_torch() -> None:
    from torch._inductor import compile_fx, config
    from torch._inductor.output_code import CompiledFxGraph

    def state() -> tuple[object, ...]:
        own = CompiledFxGraph.__dict__
        return (
            *(own[name] for name in ("__init__", "__call__", "post_compile")),
            compile_fx.compile_fx,
            compile_fx._compile_fx_inner,
            config.trace.provenance_tracking_level,
            torch.compiler.config.cache_key_tag,
        )

    before = state()
    models.asked(*models.mlp())
    with pytest.raises(KeyboardInterrupt), provenance.collected(ModuleNames([])):
        raise KeyboardInterrupt
    assert state() == before


def test_no_graph_is_kept_alive_or_keeps_a_name_for_having_been_watched() -> None:
    from torch._inductor import config

    model, call = models.mlp()
    names = ModuleNames([("model", model)])
    graphs: list[weakref.ref[Any]] = []
    torch.compiler.reset()
    with config.patch(force_disable_caches=True), switched_on((Switch(CompileTarget("model", model), {}),)):
        with provenance.collected(names) as collection:
            call()
            graphs += map(weakref.ref, collection.graphs)
            assert [graph()._fx_graph_cache_key for graph in graphs] == ["tracekit0"]
        # Recordings still call it so.
        assert graphs[0]()._fx_graph_cache_key == "tracekit0"
        assert (collection.graphs, collection.roots) == ([], {})
        sites = trace_calls(Form("compiled", "cpu", call, nullcontext), collection, models.NOWHERE, Silent())
        assert graphs[0]()._fx_graph_cache_key is None
        assert not hasattr(graphs[0](), provenance.KEPT)
    assert [graph.key for graph in sites.graphs] == ["tracekit0"]
    assert [call.graph for call in sites.calls] == [0]
    assert sites.graphs[0].sites
    torch.compiler.reset()
    gc.collect()
    assert graphs[0]() is None


def test_a_graph_that_torch_has_thrown_away_is_told_of_but_called_by_nobody() -> None:
    model, call = models.mlp()
    torch.compiler.reset()
    with switched_on((Switch(CompileTarget("model", model), {}),)):
        with provenance.collected(ModuleNames([("model", model)])) as collection:
            call()
        torch.compiler.reset()
        gc.collect()
        sites = trace_calls(Form("compiled", "cpu", call, nullcontext), collection, models.NOWHERE, Silent())
    assert len(sites.graphs) == 1
    assert [each.graph for each in sites.calls] == [None]
    assert sites.noted == (Noted("compiled_after_timing"),)


def test_graphs_that_cannot_be_read_are_said_and_cost_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_describe", lambda graph, root: 1 / 0)
    _eager, compiled = models.asked(*models.mlp())
    assert compiled.graphs == ()
    assert [note.code for note in compiled.noted] == ["provenance_unreadable"]
    assert str(compiled.noted[0].facts["error"]).startswith("ZeroDivisionError")


def test_graphs_that_several_threads_compile_have_tags_of_their_own_and_leave_none_behind() -> None:
    from torch._inductor import config

    seen: list[tuple[str, int]] = []
    inside: list[int] = []

    def compiling(graph_module: Any) -> None:
        inside.append(1)
        before = str(torch.compiler.config.cache_key_tag)
        time.sleep(0.02)
        # Nobody else has changed it meanwhile, nor is anybody else here.
        assert torch.compiler.config.cache_key_tag == before
        assert len(inside) == 1
        seen.append((before, config.trace.provenance_tracking_level))
        inside.pop()

    def graph(name: str) -> Any:
        node = types.SimpleNamespace(name=name, meta={})
        return types.SimpleNamespace(graph=types.SimpleNamespace(nodes=[node]))

    before = torch.compiler.config.cache_key_tag, config.trace.provenance_tracking_level
    with provenance.collected(ModuleNames([])) as collection:
        wrapped = provenance._under_its_own_tag(compiling, collection)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(wrapped, map(graph, "abcdefgh")))
    assert not collection.problems
    # Autograd's threads do not know what this one has set: provenance is on and kept apart there too.
    assert {level for _, level in seen} == {1}
    assert all(provenance.CACHE_TAG in tag for tag, _ in seen)
    assert len({tag for tag, _ in seen}) == 8
    assert len({len(tag) for tag, _ in seen}) == 1
    assert (torch.compiler.config.cache_key_tag, config.trace.provenance_tracking_level) == before


def test_generated_code_differs_by_comments_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.output_code import CompiledFxGraph

    real, codes = CompiledFxGraph.post_compile, []

    def noted(graph: Any, *arguments: Any, **options: Any) -> Any:
        codes.append([line for line in graph.source_code.splitlines() if not line.lstrip().startswith("#")])
        return real(graph, *arguments, **options)

    monkeypatch.setattr(CompiledFxGraph, "post_compile", noted)
    model, call = models.mlp()
    models.asked(model, call)
    torch.compiler.reset()
    with models.recording_settings("cpu"):
        model.compile()
        call()
    assert len(codes) == 2
    assert without_graph_number(codes[0]) == without_graph_number(codes[1])


def without_graph_number(code: list[str]) -> list[str]:
    return [re.sub(r"graph_\d+_", "graph_", line) for line in code]


def test_asking_compiles_nothing_twice() -> None:
    before = read_counters()["graphs"]
    _eager, compiled = models.asked(*models.mlp())
    assert len(compiled.graphs) == read_counters()["graphs"] - before == 1
    assert not compiled.noted


def test_this_torch_has_everything() -> None:
    assert missing_provenance() is None


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("torch._inductor.compile_fx", "_compile_fx_inner"),
        ("torch._inductor.debug", "_inductor_triton_kernel_to_post_grad_node_info"),
        ("torch._inductor.output_code.CompiledFxGraph", "post_compile"),
        ("torch._inductor.output_code", "CompiledFxGraph"),
    ],
)
def test_what_a_torch_lacks_is_said(monkeypatch: pytest.MonkeyPatch, owner: str, name: str) -> None:
    monkeypatch.delattr(f"{owner}.{name}")
    missing = missing_provenance()
    assert missing is not None
    assert name in str(missing.facts.get("names", missing.facts.get("error")))
    assert missing.facts["torch"] == torch.__version__


def test_a_graph_that_is_made_of_other_things_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(self: Any, lowering: Any) -> None: ...

    monkeypatch.setattr("torch._inductor.output_code.CompiledFxGraph.__init__", made)
    missing = missing_provenance()
    assert missing is not None
    assert (missing.code, missing.facts["arguments"]) == ("torch_makes_graphs_otherwise", ("self", "lowering"))


def test_a_torch_that_is_too_old_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.8.0")
    assert missing_provenance() == Noted("torch_too_old", {"torch": "2.8.0", "oldest": "2.9"})


def test_launches_are_in_the_order_of_call_also_through_partitions() -> None:
    code = """
triton_poi_fused_add_0 = async_compile.triton('''
def triton_poi_fused_add_0(in_ptr0):
    other.run(in_ptr0)
''')
def partition_1(args):
    # [Provenance debug handles] extern_kernels.mm:4
    extern_kernels.mm(a, b, out=c)
def partition_0(args):
    # [Provenance debug handles] triton_poi_fused_add_0:1
    triton_poi_fused_add_0.run(a, b, 10, stream=stream0)
    triton_per_fused_mix_1.run(a, b, 10, stream=stream0)
async_compile.wait(globals())
class Runner:
    def call(self, args):
        (buf0,) = self.partitions[0](partition0_args)
        # [Provenance debug handles] torch.ops.aten.sort.default:2
        buf1 = torch.ops.aten.sort.default(buf0)
        (buf2,) = self.partitions[1](partition1_args)
def benchmark_compiled_module():
    triton_poi_fused_add_0.run(a, b, 10)
"""
    kernels = {"triton_poi_fused_add_0:1": ["add"], "extern_kernels.mm:4": ["mm"], "torch.ops.aten.sort.default:2": []}
    nodes = tuple(GraphNode(name, name, None, None, None, 0) for name in ("mm", "add"))
    sites = launch_sites(code, kernels, nodes)
    assert [(site.kernel, site.nodes) for site in sites] == [
        ("triton_poi_fused_add_0", (1,)),
        ("triton_per_fused_mix_1", None),
        ("torch.ops.aten.sort.default", ()),
        ("extern_kernels.mm", (0,)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["transformer", "regional"])
def test_every_launch_of_a_tiny_flux_leads_to_its_eager_operators(scope: str) -> None:
    eager, compiled = flux(scope)
    join = join_operators(eager, compiled)
    assert all(each.exact for each in join.joined)
    assert not join.unexplained
    # torch 2.15 folds products by constants there, and has no node left for them.
    tables = {"transformer.time_text_embed.time_proj", "transformer.pos_embed"}
    assert {eager.ops[i].module for i in join.unmatched} <= tables
    assert join.wrong_sizes == 0
    assert len(join.joined) > 300
    nowhere = {eager.ops[each.op].name for each in join.joined if not each.sites}
    assert nowhere <= {"aten.cat.default"}, "only what producers write into place needs no launch"
    assert not any(op.line and op.line.startswith("/") for op in eager.ops)


def flux(scope: str) -> tuple[EagerOps, CompiledSites]:
    pytest.importorskip("diffusers")
    from tracekit.capture.source_location import names_of
    from tracekit.model.progress import Silent
    from tracekit.model.workload import Request
    from tracekit.workloads.flux import build

    workload = build(Request("flux", scope=scope), "tiny", "cpu", Silent())
    names = names_of(workload)
    return models.eager_ops(names, workload.call), models.compiled_sites(names, workload.targets, workload.call)
