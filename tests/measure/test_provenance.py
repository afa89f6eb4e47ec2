"""What Inductor tells of its launches, and whether it leads back to the eager operators: with the real compiler."""

import gc
import re
import time
import types
import uuid
import weakref
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from tests.measure import provenance_models as models
from tests.measure.provenance_models import Asked, Layer, Stack, ThreeAlike, called, parts_of
from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.output_code import CompiledFxGraph

from tracekit.comparison.matching.launch_sites import Join, join_operators
from tracekit.measure import provenance
from tracekit.measure.compilation import read_counters, recording_options
from tracekit.measure.forms import Switch, switched_on
from tracekit.measure.provenance import missing_provenance
from tracekit.measure.source_location import ModuleNames, names_of
from tracekit.model.progress import Silent
from tracekit.model.provenance import CompiledSites, EagerOps, GraphCall
from tracekit.model.workload import CompileTarget, Request
from tracekit.statements.noted import CompiledAfterTiming

COMPILED = AsyncCompile.cpp_pybinding


@pytest.fixture(scope="module", autouse=True)
def graphs_of_this_session_without_their_kernels() -> Iterator[None]:
    """Graphs are compiled here, to code that launches kernels of C++ which do nothing: what they would compute is asked
    by no test, and to compile them takes most of the time."""
    with torch.compiler.config.patch(cache_key_tag=uuid.uuid4().hex), pytest.MonkeyPatch.context() as patched:
        patched.setattr(AsyncCompile, "cpp_pybinding", lambda *_arguments: lambda *_buffers: None)
        yield


@pytest.fixture(scope="module")
def mlp() -> Asked:
    return models.asked(*models.mlp())


@pytest.fixture(scope="module")
def three_alike() -> Asked:
    model = ThreeAlike().eval()
    return models.asked(model, called(model, torch.randn(3, 8), torch.randn(5, 8), torch.randn(7, 8)))


def exactly_joined(eager: EagerOps, compiled: CompiledSites) -> Join:
    join = join_operators(eager, compiled)
    assert all(each.exact for each in join.joined) and not join.unmatched and not join.unexplained, join
    return join


@pytest.mark.parametrize("model", ["mlp", "three_alike"])
def test_every_launch_site_leads_to_its_eager_operators(model: str, request: pytest.FixtureRequest) -> None:
    eager, compiled = request.getfixturevalue(model)
    join = exactly_joined(eager, compiled)
    assert not compiled.noted
    (graph,) = compiled.graphs
    assert len(graph.sites) == {"mlp": 15}.get(model, len(graph.sites))
    assert all(site.nodes for site in graph.sites)
    # The join does not use sizes: they agree, and would not if it were wrong.
    assert join.wrong_sizes == 0
    outputs = [op.outputs for op in eager.ops]
    shifted = zip(eager.ops, outputs[7:] + outputs[:7], strict=True)
    wrong = join_operators(replace(eager, ops=tuple(replace(op, outputs=other) for op, other in shifted)), compiled)
    assert wrong.wrong_sizes > len(wrong.joined) / 3


def test_a_fused_kernel_names_the_operators_lines_and_modules_it_covers(mlp: Asked) -> None:
    eager, compiled = mlp
    join = join_operators(eager, compiled)
    last = max(site for each in join.joined for site in each.sites)
    inside = [eager.ops[each.op] for each in join.joined if last in each.sites]
    assert [op.name for op in inside] == ["aten._softmax.default", "aten.mul.Tensor", "aten.add.Tensor"]
    assert {op.module for op in inside} == {"model"}
    assert len({op.line for op in inside}) == 1


def test_equal_operators_of_one_line_swapped_are_noticed_by_their_sizes(three_alike: Asked) -> None:
    eager, compiled = three_alike
    sines = [i for i, op in enumerate(eager.ops) if op.name == "aten.sin.default"]
    assert len({(eager.ops[i].module, eager.ops[i].line) for i in sines}) == 1
    ops = [*eager.ops]
    ops[sines[0]], ops[sines[1]] = ops[sines[1]], ops[sines[0]]
    join = join_operators(replace(eager, ops=tuple(ops)), compiled)
    assert join.wrong_sizes == 2
    assert [each.exact for each in join.joined if each.op in sines[:2]] == [False, False]


def test_sites_are_in_the_order_in_which_they_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # With kernels that record themselves, in code of its own for so many rows.
    monkeypatch.setattr(AsyncCompile, "cpp_pybinding", COMPILED)
    model, raw = Stack().eval(), tmp_path / "raw.json"
    call, targets = called(model, torch.randn(9, 16)), (CompileTarget("model", model),)
    compiled = models.compiled_sites(ModuleNames([("model", model)]), targets, call, raw)
    expected = [site.kernel.replace("extern_kernels.", "aten::") for site in compiled.graphs[0].sites]
    assert len(expected) == 4
    # Fused functions are recorded with the number of their graph before their name.
    ran = [re.sub(r"^graph_\d+_", "", name) for name in models.directly_in(raw, "## Call CompiledFxGraph")]
    assert [name for name in ran if name in expected] == expected


@pytest.mark.parametrize("caches", [True, False])
def test_graph_breaks_make_several_graphs_that_are_told_apart(caches: bool) -> None:
    model = Stack(broken=True).eval()
    with config.patch(force_disable_caches=not caches):
        eager, compiled = models.asked(model, called(model), fullgraph=False)
    assert compiled.calls == (GraphCall(0, "model"), GraphCall(1, "model"))
    assert len({graph.key for graph in compiled.graphs} - {"None"}) == 2
    exactly_joined(eager, compiled)


def test_one_graph_for_equal_blocks_is_led_back_to_the_block_it_runs_for() -> None:
    model, call = models.mlp()
    eager, compiled = models.asked(model, call, parts_of(model, "blocks"))
    assert [each.module for each in compiled.calls] == ["model.blocks.0", "model.blocks.1", "model.blocks.2"]
    assert len(compiled.graphs) == 1
    for each in exactly_joined(eager, compiled).joined:
        assert {compiled.calls[number].module for number, _ in each.sites} == {eager.ops[each.op].module[:14]}


def test_a_graph_that_runs_twice_in_a_step_is_led_back_call_by_call() -> None:
    model = Stack().eval()
    once = called(model)
    joined = exactly_joined(*models.asked(model, lambda: (once(), once()))).joined
    by_call = Counter(number for each in joined for number, _ in each.sites)
    assert by_call[0] == by_call[1] >= 6
    first, second = ([each.op for each in joined if number in dict(each.sites)] for number in (0, 1))
    assert max(first) < min(second)


def test_recompiled_variants_are_graphs_of_their_own_and_symbolic_sizes_are_unknown_not_wrong() -> None:
    model = Layer().eval()
    small, large = called(model, torch.randn(2, 16)), called(model, torch.randn(6, 16))
    eager, compiled = models.asked(model, lambda: (small(), large()), dynamic=False)
    assert [each.graph for each in compiled.calls] == [0, 1]
    assert exactly_joined(eager, compiled).wrong_sizes == 0
    eager, compiled = models.asked(model, large, dynamic=True)
    assert (None, 16) in {output.sizes for node in compiled.graphs[0].nodes for output in node.outputs}
    assert join_operators(eager, compiled).wrong_sizes == 0


def test_several_components_and_methods_keep_their_names() -> None:
    first, second, x = Layer().eval(), Layer().eval(), torch.randn(4, 16)
    targets = (CompileTarget("encoder", first), CompileTarget("vae", second, "decode"))
    names = ModuleNames([("encoder", first), ("vae", second)], targets)

    def call() -> object:
        with torch.no_grad():
            return first(x), second.decode(x)

    eager, compiled = models.eager_ops(names, call), models.compiled_sites(names, targets, call)
    assert [each.module for each in compiled.calls] == ["encoder", "vae"]
    exactly_joined(eager, compiled)


def test_backward_graphs_lead_to_backward_operators_of_their_own_block() -> None:
    model, x = Stack(), torch.randn(4, 16, requires_grad=True)
    eager, compiled = models.asked(model, lambda: model(x).sum().backward(), parts_of(model, "layers"))
    assert [graph.is_backward for graph in compiled.graphs] == [False, True]
    calls = [(each.graph, each.module) for each in compiled.calls]
    assert calls == [(0, "model.layers.0"), (0, "model.layers.1"), (1, "model.layers.1"), (1, "model.layers.0")]
    joined = join_operators(eager, compiled).joined
    for each in joined:
        called_for = {compiled.calls[number].module for number, _ in each.sites}
        assert len(called_for) <= 1
        assert all(eager.ops[each.op].module.startswith(str(block)) for block in called_for)
    matmuls = [each for each in joined if eager.ops[each.op].backward and eager.ops[each.op].name == "aten.mm.default"]
    assert [eager.ops[each.op].module[:14] for each in matmuls] == [*["model.layers.1"] * 2, *["model.layers.0"] * 2]
    assert all(each.exact and each.sites for each in matmuls)
    assert all(compiled.calls[number].graph == 1 for each in matmuls for number, _ in each.sites)


def test_a_cache_filled_without_provenance_is_not_used_and_one_filled_with_it_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, codes = CompiledFxGraph.post_compile, []

    def noted(graph: Any, *arguments: Any, **options: Any) -> Any:
        code = [line for line in graph.source_code.splitlines() if not line.lstrip().startswith("#")]
        codes.append([re.sub(r"graph_\d+_", "graph_", line) for line in code])
        return real(graph, *arguments, **options)

    def ask() -> tuple[int, int, list[Any]]:
        model, before = ThreeAlike().eval(), read_counters()
        join = join_operators(*models.asked(model, called(model, *inputs)))
        found = [(each.op, each.sites, each.exact) for each in join.joined]
        after = read_counters()
        return after["cache_hits"] - before["cache_hits"], after["graphs"] - before["graphs"], found

    plain, inputs = ThreeAlike().eval(), [torch.randn(each, 4) for each in (2, 3, 4)]
    torch.compiler.reset()
    monkeypatch.setattr(CompiledFxGraph, "post_compile", noted)
    plain.compile(options=recording_options("cpu"))
    called(plain, *inputs)()
    first, second = ask(), ask()
    assert (first[:2], second[:2]) == ((0, 1), (1, 1)), "one graph each time, the second from the cache"
    assert second[2] == first[2] and len(first[2]) > 10
    assert codes[0] == codes[1] == codes[2], "generated code differs by comments alone"


def test_equal_graphs_of_other_lines_have_the_lines_of_their_own() -> None:
    def first(x: Any) -> Any:
        return (x.sin() + 1).cos()

    def second(x: Any) -> Any:
        return (x.sin() + 1).cos()

    lines = []
    for function in (first, second):
        module = torch.nn.Module()
        module.forward = function  # type: ignore[method-assign]
        eager, compiled = models.asked(module, called(module, torch.randn(8)))
        exactly_joined(eager, compiled)
        lines.append({node.line for node in compiled.graphs[0].nodes})
    assert lines[0].isdisjoint(lines[1])


def test_nothing_of_it_remains_in_torch() -> None:
    def state() -> list[object]:
        methods = [vars(CompiledFxGraph)[name] for name in provenance.METHODS]
        return methods + [getattr(attrgetter(owner)(torch), name) for owner, name in provenance.NAMES]

    assert missing_provenance() is None, "and torch's modules are imported now"
    before = state()
    model = Layer().eval()
    models.asked(model, called(model))
    with pytest.raises(KeyboardInterrupt), provenance.collected(ModuleNames([])):
        raise KeyboardInterrupt
    assert state() == before


@pytest.fixture
def layer() -> Iterator[Layer]:
    """Compiled for the test."""
    torch.compiler.reset()
    model = Layer().eval()
    with switched_on((Switch(CompileTarget("model", model), {}),)):
        yield model


def test_no_graph_is_kept_alive_or_keeps_a_name_for_having_been_watched(layer: Layer) -> None:
    call, graphs = called(layer), []
    with config.patch(force_disable_caches=True):
        with provenance.collected(ModuleNames([("model", layer)])) as collection:
            call()
            graphs += map(weakref.ref, collection.graphs)
            assert [graph()._fx_graph_cache_key for graph in graphs] == ["tracekit0"]
        # Recordings still call it so.
        assert graphs[0]()._fx_graph_cache_key == "tracekit0"
        assert (collection.graphs, collection.roots) == ([], {})
        sites = models.traced(call, collection)
        assert graphs[0]()._fx_graph_cache_key is None
        assert not hasattr(graphs[0](), provenance.KEPT)
    assert [graph.key for graph in sites.graphs] == ["tracekit0"]
    assert [call.graph for call in sites.calls] == [0]
    assert sites.graphs[0].sites
    torch.compiler.reset()
    gc.collect()
    assert graphs[0]() is None


def test_a_graph_that_torch_has_thrown_away_is_told_of_but_called_by_nobody(layer: Layer) -> None:
    with provenance.collected(ModuleNames([("model", layer)])) as collection:
        called(layer)()
    torch.compiler.reset()
    gc.collect()
    sites = models.traced(called(layer), collection)
    assert len(sites.graphs) == 1
    assert [each.graph for each in sites.calls] == [None]
    assert sites.noted == (CompiledAfterTiming(),)


def test_graphs_that_cannot_be_read_are_said_and_cost_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_describe", lambda graph, root: 1 / 0)
    model = Layer().eval()
    _eager, compiled = models.asked(model, called(model))
    assert compiled.graphs == ()
    assert [note.code for note in compiled.noted] == ["provenance_unreadable"]
    assert str(compiled.noted[0].facts["error"]).startswith("ZeroDivisionError")


def test_graphs_that_several_threads_compile_have_tags_of_their_own_and_leave_none_behind() -> None:
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
    with provenance.collected(ModuleNames([])) as collection, ThreadPoolExecutor(4) as pool:
        list(pool.map(partial(collection.compile_under_own_tag, compiling), map(graph, "abcdefgh")))
    assert not collection.problems
    # Autograd's threads do not know what this one has set: provenance is on and kept apart there too.
    assert {level for _, level in seen} == {1}
    assert all(provenance.CACHE_TAG in tag for tag, _ in seen)
    assert len({tag for tag, _ in seen}) == 8
    assert (torch.compiler.config.cache_key_tag, config.trace.provenance_tracking_level) == before


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("torch._inductor.compile_fx", "_compile_fx_inner"),
        ("torch._inductor.debug", "_inductor_triton_kernel_to_post_grad_node_info"),
        ("torch._inductor.output_code.CompiledFxGraph", "post_compile"),
        ("torch._inductor.output_code", "CompiledFxGraph"),
        ("torch._inductor", "debug"),
    ],
)
def test_what_a_torch_lacks_is_said(monkeypatch: pytest.MonkeyPatch, owner: str, name: str) -> None:
    assert missing_provenance() is None, "this torch has everything"
    monkeypatch.delattr(f"{owner}.{name}")
    missing = missing_provenance()
    assert missing is not None
    assert name in str(missing.facts.get("names", missing.facts.get("error")))
    assert missing.facts["torch"] == torch.__version__


def test_a_torch_that_makes_graphs_of_other_things_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(self: Any, lowering: Any) -> None: ...

    monkeypatch.setattr("torch._inductor.output_code.CompiledFxGraph.__init__", made)
    missing = missing_provenance()
    assert missing is not None
    assert (missing.code, missing.facts["arguments"]) == ("torch_makes_graphs_otherwise", ("self", "lowering"))


@pytest.mark.slow
def test_every_launch_of_a_tiny_flux_s_blocks_leads_to_its_eager_operators() -> None:
    pytest.importorskip("diffusers")
    from tracekit.workloads.flux import build

    workload = build(Request("flux", scope="regional", height=64, width=64, steps=1), "tiny", "cpu", Silent())
    names = names_of(workload)
    eager = models.eager_ops(names, workload.call)
    # One of two kinds of blocks: the other takes as long again, and tests/gpu has both.
    targets = [each for each in workload.targets if "single" in each.component]
    join = join_operators(eager, models.compiled_sites(names, targets, workload.call))
    assert all(each.exact for each in join.joined)
    assert not join.unexplained
    # torch 2.15 folds products by constants there, and has no node left for them.
    tables = {"transformer.time_text_embed.time_proj", "transformer.pos_embed"}
    assert {eager.ops[i].module for i in join.unmatched} <= tables
    assert join.wrong_sizes == 0
    assert len(join.joined) > 70
    nowhere = {eager.ops[each.op].name for each in join.joined if not each.sites}
    assert nowhere <= {"aten.cat.default"}, "only what producers write into place needs no launch"
    assert not any(op.line and op.line.startswith("/") for op in eager.ops)


def test_the_triton_code_of_collected_graphs_is_kept_when_watching_is_over() -> None:
    code = "k = async_compile.triton('triton_poi_fused_add_0', '''\n@triton.jit\ndef k(): ...\n''', device_str='cuda')"
    graph = type("Graph", (), {"source_code": code, "_fx_graph_cache_key": "key", "fx_kwargs": {}})
    collection = provenance.Collection(ModuleNames([]), graphs=[graph()])
    collection.close()
    assert not collection.graphs and not collection.problems
    assert collection.kernel_sources().sources == {"triton_poi_fused_add_0": ("@triton.jit\ndef k(): ...",)}


def test_each_kernel_s_source_is_kept_once_and_not_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "LONGEST_SOURCE", 8)
    monkeypatch.setattr(provenance, "MOST_SOURCE", 12)
    # Two graphs have the same kernel, and two kernels the same name.
    told = [("add_0", "a + b"), ("add_0", "a + b"), ("add_0", "a + 1"), ("long_1", "a" * 9), ("mul_2", "a * b")]
    found = provenance.Collection(ModuleNames([]), _sources=told).kernel_sources()
    assert found.sources == {"add_0": ("a + b", "a + 1")}
    assert found.left_out == 2
