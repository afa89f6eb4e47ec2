"""Links by provenance, on forms built by hand. tests/capture/test_provenance.py has the real compiler's."""

from __future__ import annotations

from collections import abc
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sides import make_pair, scaled

from tracekit.comparison.matching import check_partition
from tracekit.comparison.matching.cells import find_cells, why_no_provenance, with_as_many_steps
from tracekit.comparison.matching.groups import group_by_cells
from tracekit.comparison.matching.provenance_links import Link, Linked, link
from tracekit.model.note import Note
from tracekit.model.provenance import (
    CompiledActivity,
    CompiledGraph,
    CompiledSites,
    EagerOp,
    EagerOps,
    GraphCall,
    GraphNode,
    LaunchSite,
    TaggedActivity,
    TensorShape,
)
from tracekit.model.sequence import Activity, Operator, Sequence

FAMILIES = {"gemm": "gemm", "nvjet": "gemm", "flash": "attention", "Memset": "memset", "splitk": "gemm_part"}


def make_sequence(names: abc.Sequence[str], steps: int = 1) -> Sequence:
    activities = tuple(Activity(name, family(name), 1.0, None) for name in [*names] * steps)
    return Sequence(activities, 1 / steps, "none")


def family(name: str) -> str:
    return next((kind for begin, kind in FAMILIES.items() if name.startswith(begin)), "other")


def make_op(name: str, module: str = "m", line: str = "m.py:1", *, size: int = 8) -> EagerOp:
    return EagerOp(f"aten.{name}.default", module, line, (TensorShape((size,), "float32"),), 0, None)


def make_eager(*launched: tuple[EagerOp, abc.Sequence[str]]) -> EagerOps:
    """Operators with the kernels each launched."""
    activities = [TaggedActivity(kernel, i) for i, (_, kernels) in enumerate(launched) for kernel in kernels]
    return EagerOps(1, "2.13", tuple(op for op, _ in launched), tuple(activities))


_order = count()


def make_node(op: str, module: str | None = "m", line: str = "m.py:1", *, target: str = "", size: int = 8) -> GraphNode:
    number = next(_order)
    sizes = (TensorShape((size,), "float32"),)
    operator = f"aten.{op}.default"
    return GraphNode(f"{op}_{number}", target or operator, operator, module, line, number, sizes)


def make_graph(
    nodes: abc.Sequence[GraphNode], sites: abc.Sequence[tuple[str, abc.Sequence[int] | None]], **changes: Any
) -> Any:
    made = tuple(LaunchSite(kernel, None if some is None else tuple(some)) for kernel, some in sites)
    return replace(CompiledGraph("k0", False, "m", tuple(nodes), made), **changes)


def make_compiled(
    graph: CompiledGraph, activities: abc.Sequence[CompiledActivity], modules: abc.Sequence[str] = ("m",)
) -> CompiledSites:
    calls = tuple(GraphCall(0, module) for module in modules)
    return CompiledSites(1, "2.13", (graph,), calls, tuple(activities))


def in_call(call: int, *launched: tuple[str, str]) -> list[CompiledActivity]:
    """Kernels with the operator around each; equal operators in a row are one."""
    made: list[CompiledActivity] = []
    ordinal, before = -1, ""
    for name, operator in launched:
        ordinal += operator != before
        before = operator
        made.append(CompiledActivity(name, call, operator, ordinal))
    return made


def replayed(call: int, *names: str) -> list[CompiledActivity]:
    return [CompiledActivity(name, call) for name in names]


def linked(eager: EagerOps, compiled: CompiledSites, steps: int = 1) -> Linked:
    a = make_sequence([activity.name for activity in eager.activities], steps)
    b = make_sequence([activity.name for activity in compiled.activities], steps)
    return link(a, b, eager, compiled)


def pairs(found: Linked) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    return {(each.a_positions, each.b_positions) for each in found.links}


LINEAR = (make_op("addmm", line="m.py:1"), ["gemm_eager"])
ADD = (make_op("add", line="m.py:2"), ["vectorized_add"])
RELU = (make_op("relu", line="m.py:3"), ["vectorized_relu"])
NODES = [make_node("addmm", line="m.py:1"), make_node("add", line="m.py:2"), make_node("relu", line="m.py:3")]
SITES: list[tuple[str, abc.Sequence[int] | None]] = [
    ("extern_kernels.addmm", [0]),
    ("triton_poi_fused_add_relu_0", [1, 2]),
]
RUN = in_call(0, ("nvjet_compiled", "aten::addmm"), ("triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_0"))


#: The links between these.
BOTH = {Link((0,), (0,), ("m", "m.py:1"), True), Link((1, 2), (1,), ("m", "m.py:2", "m.py:3"), True)}
ADDED = "triton_poi_fused_more_1"


def test_a_fused_kernel_is_linked_to_the_kernels_of_every_operator_in_it() -> None:
    found = linked(make_eager(LINEAR, ADD, RELU), make_compiled(make_graph(NODES, SITES), RUN))
    assert set(found.links) == BOTH
    assert (found.a_aligned, found.b_aligned, found.notes) == (3, 2, ())


@pytest.mark.parametrize(
    ("op", "node", "nodes_of_site", "link", "code"),
    [
        # Computed again in a second kernel it counts once.
        ("mul", make_node("mul", line="m.py:4"), [1, 3], Link((3,), (2,), ("m", "m.py:4"), True), None),
        # A node that needs no launch is work saved; of an operator that no graph knows that is not exact.
        ("cat", make_node("cat", line="m.py:4"), (), Link((3,), (), ("m", "m.py:4"), True), None),
        ("clone", None, (), Link((3,), (), ("m", "m.py:4"), False), "operators_without_counterpart"),
        # A site of no operator is work added.
        (
            *(None, make_node("arange", "m.mask", "mask.py:9"), [3]),
            *(Link((), (2,), ("m.mask", "mask.py:9"), False), "unexplained_launch_sites"),
        ),
        # An operator and a site of one module that lack a partner, or a site that Inductor tells nothing of, are left.
        ("sum", make_node("arange", "m", "m.py:9"), [3], None, "unexplained_launch_sites"),
        ("sum", None, None, None, "unexplained_launch_sites"),
    ],
)
def test_one_more_operator_or_site_is_linked_as_far_as_it_is_known(
    op: str | None, node: GraphNode | None, nodes_of_site: abc.Sequence[int] | None, link: Link | None, code: str | None
) -> None:
    """`nodes_of_site` are those of one more site; empty where there is none, None where Inductor does not say."""
    more = [(make_op(op, line="m.py:4"), ["kernel"])] if op else []
    has_site = nodes_of_site is None or len(nodes_of_site) > 0
    sites = [*SITES, *([(ADDED, nodes_of_site)] if has_site else [])]
    run = [*RUN, *([CompiledActivity(ADDED, 0, ADDED, 2)] if has_site else [])]
    compiled = make_compiled(make_graph([*NODES, *([node] if node else [])], sites), run)
    found = linked(make_eager(LINEAR, ADD, RELU, *more), compiled)
    assert set(found.links) == BOTH | ({link} if link else set())
    assert code is None or code in [note.code for note in found.notes]


def test_steps_that_follow_one_another_are_linked_alike() -> None:
    found = linked(make_eager(LINEAR, ADD, RELU), make_compiled(make_graph(NODES, SITES), RUN), steps=2)
    assert pairs(found) == {((0, 3), (0, 2)), ((1, 2, 4, 5), (1, 3))}


def test_a_library_call_takes_all_that_it_launched() -> None:
    eager = make_eager((LINEAR[0], ["Memset", "gemm_eager", "splitk_reduce"]), ADD, RELU)
    run = in_call(0, ("nvjet", "aten::addmm"), ("splitk", "aten::addmm"), (SITES[1][0], SITES[1][0]))
    assert pairs(linked(eager, make_compiled(make_graph(NODES, SITES), run))) == {((0, 1, 2), (0, 1)), ((3, 4), (2,))}


def test_views_neither_link_nor_count() -> None:
    nodes = [*NODES, make_node("view", line="m.py:1")]
    sites = [SITES[0], (SITES[1][0], [1, 2, 3])]
    eager = make_eager(LINEAR, (make_op("view", line="m.py:1"), []), ADD, RELU)
    assert pairs(linked(eager, make_compiled(make_graph(nodes, sites), RUN))) == {((0,), (0,)), ((1, 2), (1,))}


def test_a_library_call_that_lists_its_inputs_is_linked_to_itself_alone() -> None:
    name = "_scaled_dot_product_flash_attention"
    nodes = [make_node("add", line="m.py:1"), make_node(name, line="m.py:2")]
    sites = [("triton_poi_fused_add_0", [0]), (f"torch.ops.aten.{name}.default", [0, 1])]
    run = in_call(0, ("triton_poi_fused_add_0",) * 2, ("flash_fwd", f"aten::{name}"))
    eager = make_eager((make_op("add"), ["vectorized_add"]), (make_op(name, line="m.py:2"), ["flash_fwd"]))
    assert pairs(linked(eager, make_compiled(make_graph(nodes, sites), run))) == {((0,), (0,)), ((1,), (1,))}


def test_copies_into_a_cuda_graph_are_work_added() -> None:
    run = in_call(0, ("multi_tensor_apply", "aten::_foreach_copy_"))
    run += replayed(0, "nvjet_compiled", "triton_poi_fused_add_relu_0")
    found = linked(make_eager(LINEAR, ADD, RELU), make_compiled(make_graph(NODES, SITES), run))
    assert pairs(found) == {((), (0,)), ((0,), (1,)), ((1, 2), (2,))}


def test_a_replay_without_operators_is_told_apart_by_names_and_families() -> None:
    nodes = [make_node("addmm", line="m.py:1"), make_node("mm", line="m.py:2"), make_node("relu", line="m.py:3")]
    sites = [("extern_kernels.addmm", [0]), ("extern_kernels.mm", [1]), ("triton_poi_fused_relu_0", [2])]
    run = replayed(0, "nvjet_a", "splitk_reduce", "Memset", "nvjet_b", "triton_poi_fused_relu_0")
    eager = make_eager(
        (make_op("addmm", line="m.py:1"), ["gemm_a"]),
        (make_op("mm", line="m.py:2"), ["gemm_b"]),
        (make_op("relu", line="m.py:3"), ["vectorized_relu"]),
    )
    found = linked(eager, make_compiled(make_graph(nodes, sites), run))
    assert pairs(found) == {((0,), (0, 1)), ((1,), (2, 3)), ((2,), (4,))}


def test_library_calls_of_a_replay_that_cannot_be_told_apart_are_linked_together_and_said() -> None:
    nodes = [make_node("addmm", line="m.py:1"), make_node("sort", line="m.py:2")]
    sites = [("extern_kernels.addmm", [0]), ("torch.ops.aten.sort.default", [1])]
    eager = make_eager((make_op("addmm"), ["gemm_a"]), (make_op("sort", line="m.py:2"), ["radix"]))
    found = linked(eager, make_compiled(make_graph(nodes, sites), replayed(0, "nvjet", "radix", "radix")))
    assert [(each.a_positions, each.b_positions, each.exact) for each in found.links] == [((0, 1), (0, 1, 2), False)]
    assert "ambiguous_launch_sites" in [note.code for note in found.notes]


def test_one_graph_for_several_modules_is_linked_call_by_call() -> None:
    nodes = [make_node("relu", "m.0", "b.py:1"), make_node("tanh", None, "b.py:2")]
    graph = make_graph(nodes, [("triton_poi_fused_relu_0", [0]), ("triton_poi_fused_tanh_1", [1])], root="m.0")
    names = ("triton_poi_fused_relu_0", "triton_poi_fused_tanh_1")
    run = [each for call in range(2) for each in in_call(call, *((name, name) for name in names))]
    eager = make_eager(
        *(
            (make_op(op, f"m.{i}", f"b.py:{line}"), [f"vectorized_{op}"])
            for i in range(2)
            for line, op in ((1, "relu"), (2, "tanh"))
        )
    )
    found = linked(eager, make_compiled(graph, run, ("m.0", "m.1")))
    assert pairs(found) == {((i,), (i,)) for i in range(4)}
    assert all(each.exact for each in found.links)


def test_unequal_numbers_are_linked_together_and_said_to_be_approximate() -> None:
    nodes = [make_node("mul", line="m.py:1"), make_node("mul", line="m.py:1"), make_node("mul", line="m.py:1")]
    sites = [(f"triton_poi_fused_mul_{i}", [i]) for i in range(3)]
    eager = make_eager((make_op("mul"), ["mul_a"]), (make_op("mul"), ["mul_b"]))
    run = in_call(0, *((name, name) for name, _ in sites))
    found = linked(eager, make_compiled(make_graph(nodes, sites), run))
    assert [(each.a_positions, each.b_positions, each.exact) for each in found.links] == [((0, 1), (0, 1, 2), False)]
    facts = {"operators": 2, "of_operators": 2}
    assert Note("operators_linked_by_elimination", facts=facts) in found.notes


def test_an_operator_that_became_another_on_its_line_is_linked_approximately() -> None:
    nodes = [make_node("bmm", line="m.py:1"), make_node("_softmax", line="m.py:1")]
    sites = [("extern_kernels.bmm", [0]), ("triton_per_fused__softmax_0", [1])]
    run = in_call(0, ("gemm", "aten::bmm"), ("triton_per_fused__softmax_0",) * 2)
    eager = make_eager((make_op("_scaled_dot_product_flash_attention"), ["flash_fwd"]))
    found = linked(eager, make_compiled(make_graph(nodes, sites), run))
    assert [(each.a_positions, each.b_positions, each.exact) for each in found.links] == [((0,), (0, 1), False)]


def test_what_was_not_compiled_is_linked_kernel_by_kernel() -> None:
    before, after = (
        (make_op("embedding", "t5", "t.py:1"), ["embedding_kernel"]),
        (make_op("exp", "", "p.py:1"), ["exp"]),
    )
    eager = make_eager(before, LINEAR, ADD, RELU, after)
    run = [CompiledActivity("embedding_kernel", None), *RUN, CompiledActivity("exp", None)]
    found = linked(eager, make_compiled(make_graph(NODES, SITES), run))
    assert Link((0,), (0,), ("t5", "t.py:1"), True) in found.links
    assert Link((4,), (3,), ("p.py:1",), True) in found.links
    assert len(found.links) == 4


def test_what_runs_between_two_graphs_of_a_broken_model_is_not_taken_for_work_saved() -> None:
    between = (make_op("nonzero", "m", "m.py:9"), ["nonzero_kernel"])
    eager = make_eager(LINEAR, ADD, RELU, between)
    run = [*RUN, CompiledActivity("nonzero_kernel", None)]
    found = linked(eager, make_compiled(make_graph(NODES, SITES), run))
    assert Link((3,), (2,), ("m", "m.py:9"), True) in found.links
    run = [*RUN, CompiledActivity("another_kernel", None)]
    assert pairs(linked(eager, make_compiled(make_graph(NODES, SITES), run))) == {((0,), (0,)), ((1, 2), (1,))}


def test_a_graph_without_provenance_leaves_its_kernels_to_others_and_says_so() -> None:
    graph = make_graph([], [], without="it came from a cache that was filled without provenance")
    compiled = replace(make_compiled(graph, RUN), notes=("graph 0: it came from a cache",))
    found = linked(make_eager(LINEAR, ADD, RELU), compiled)
    assert not [each for each in found.links if each.b_positions]
    assert Note("provenance_noted", facts={"message": "graph 0: it came from a cache"}) in found.notes


def test_without_gpu_work_nothing_is_linked() -> None:
    compiled = make_compiled(make_graph(NODES, SITES), [])
    found = link(make_sequence(["x"]), make_sequence(["x"]), make_eager(LINEAR), compiled)
    assert (found.links, found.a_aligned) == ((), 0)
    assert found.notes == (Note("provenance_without_work"),)


def test_kernels_the_recording_has_besides_are_counted_and_left_out() -> None:
    eager, compiled = make_eager(LINEAR, ADD, RELU), make_compiled(make_graph(NODES, SITES), RUN)
    a = make_sequence(["gemm_eager", "stranger", "vectorized_add", "vectorized_relu"])
    b = make_sequence(["nvjet_compiled", "triton_poi_fused_add_relu_0"])
    found = link(a, b, eager, compiled)
    assert pairs(found) == {((0,), (0,)), ((2, 3), (1,))}
    assert found.a_aligned == 3
    facts = {"activities": 1, "of_activities": 4}
    assert found.notes == (Note("not_in_provenance", subject="eager", facts=facts),)


def test_kernels_the_recording_lacks_are_said() -> None:
    eager, compiled = make_eager(LINEAR, ADD, RELU), make_compiled(make_graph(NODES, SITES), RUN)
    b = make_sequence(["nvjet_compiled", "triton_poi_fused_add_relu_0"])
    found = link(make_sequence(["gemm_eager", "vectorized_relu"]), b, eager, compiled)
    assert pairs(found) == {((0,), (0,)), ((1,), (1,))}
    assert Note("only_in_provenance", subject="eager", facts={"activities": 1}) in found.notes


@settings(deadline=None)
@given(st.data())
def test_no_position_is_ever_in_two_links(data: st.DataObject) -> None:
    """Whatever the recordings have more or less than the run that was asked."""
    eager = make_eager(LINEAR, ADD, RELU, (make_op("cat", line="m.py:4"), ["CatArray"]))
    run = [CompiledActivity("embedding", None), *RUN, *replayed(0, "Memset"), CompiledActivity("exp", None)]
    compiled = make_compiled(make_graph([*NODES, make_node("cat", line="m.py:4")], SITES), run)
    names = sorted({each.name for each in (*eager.activities, *compiled.activities)})
    some = st.lists(st.sampled_from(names), max_size=12)
    a, b = make_sequence(data.draw(some)), make_sequence(data.draw(some))
    found = link(a, b, eager, compiled)
    for side, sequence in (("a_positions", a), ("b_positions", b)):
        used = [i for each in found.links for i in getattr(each, side)]
        assert len(used) == len(set(used))
        assert set(used) <= set(range(len(sequence.activities)))
    assert all(each.a_positions or each.b_positions for each in found.links)


A, B = make_pair(scaled(1.5), scaled(1.1))
SHAPE = (TensorShape((4, 8), "float32"),)
LINE = "model.py:7"
FUSED = "triton_poi_fused_add_mul_0"


def make_work(name: str, op: str, us: float, family: str = "pointwise") -> Activity:
    return Activity(name, family, us, Operator(op, ((4, 8),), ("float",)))


#: Of two equal blocks: an addition and a product of elements, which the compiled form does in one kernel; behind them
#: a copy that nobody was asked about.
EAGER = tuple(
    activity for _ in range(2) for activity in (make_work("add", "aten::add", 3), make_work("mul", "aten::mul", 4))
)
COMPILED = tuple(make_work(FUSED, FUSED, 5, "triton") for _ in range(2))
COPY = Activity("Memcpy DtoH (Device -> Pageable)", "memcpy", 2, None)


def eager_ops() -> EagerOps:
    ops = tuple(
        EagerOp(name, f"blocks.{block}", LINE, SHAPE, 384, None)
        for block in (0, 1)
        for name in ("aten.add", "aten.mul")
    )
    tagged = [TaggedActivity(name, i) for i, name in enumerate(("add", "mul", "add", "mul"))]
    return EagerOps(1, "2.11", ops, (*tagged, TaggedActivity(COPY.name, None)))


def compiled_sites() -> CompiledSites:
    nodes = tuple(
        GraphNode(f"{name}_{block}", f"aten.{name}", f"aten.{name}", f"blocks.{block}", LINE, 2 * block + i, SHAPE)
        for block in (0, 1)
        for i, name in enumerate(("add", "mul"))
    )
    graph = CompiledGraph("key", False, None, nodes, (LaunchSite(FUSED, (0, 1)), LaunchSite(FUSED, (2, 3))))
    activities = tuple(CompiledActivity(FUSED, 0, FUSED, i) for i in range(2))
    return CompiledSites(1, "2.11", (graph,), (GraphCall(0, None),), (*activities, CompiledActivity(COPY.name, None)))


def test_provenance_comes_first_and_alignment_takes_the_rest():
    a = replace(A, sequence=Sequence((*EAGER, COPY), 1, "own"), provenance=eager_ops())
    b = replace(B, sequence=Sequence((*COMPILED, COPY), 1, "own"), provenance=compiled_sites())
    cells, amiss = find_cells(a, b)
    check_partition(cells, 5, 3)
    assert {(cell.a, cell.b) for cell in cells if cell.how == "provenance"} >= {((0, 1), (0,)), ((2, 3), (1,))}
    assert {(cell.a, cell.b) for cell in cells} == {((0, 1), (0,)), ((2, 3), (1,)), ((4,), (2,))}
    assert amiss == ()


def test_equal_blocks_are_one_group_under_the_pattern_of_their_modules():
    a = replace(A, sequence=Sequence(EAGER, 1, "own"), provenance=eager_ops())
    b = replace(B, sequence=Sequence(COMPILED, 1, "own"), provenance=compiled_sites())
    cells, _ = find_cells(a, b)
    (group,) = group_by_cells(a.sequence, b.sequence, cells)
    assert (group.kind, group.how, group.repeats) == ("fused", "provenance", 2)
    assert group.where == ("blocks.*", LINE)
    assert (group.delta_count, group.delta_us) == (-2, -4)
    # Each addition and product reads one tensor of 128 bytes and writes one; so does what is fused of them.
    assert group.traffic.eager_bytes == 2 * 2 * 256


def test_provenance_is_of_no_use_across_runs_or_backwards():
    a = replace(A, path="one/eager-light.json", sequence=Sequence(EAGER, 1, "own"), provenance=eager_ops())
    b = replace(B, path="one/compiled-light.json", sequence=Sequence(COMPILED, 1, "own"), provenance=compiled_sites())
    for one, other, reason in ((a, replace(b, path="two/compiled-light.json"), "two_runs"), (b, a, "other_forms")):
        cells, _ = find_cells(one, other)
        assert all(cell.how != "provenance" for cell in cells)
        assert why_no_provenance(one, other) == reason


def test_one_step_that_differs_costs_the_others_no_provenance():
    a = replace(A, sequence=Sequence((*EAGER, COPY), 1, "own"), provenance=eager_ops())
    stranger = Activity("Memset (Device)", "memset", 1, None)
    steps = ((*COMPILED, COPY), (*COMPILED, stranger, COPY), (*COMPILED, COPY))
    work = Sequence(tuple(each for step in steps for each in step), 1 / 3, "own", starts=(0, 3, 7))
    a, b = with_as_many_steps(a, replace(B, sequence=work, provenance=compiled_sites()))
    assert a.sequence.starts == (0, 5, 10)
    cells, notes = find_cells(a, b)
    check_partition(cells, 15, 10)
    linked = {(cell.a, cell.b) for cell in cells if cell.how == "provenance" and len(cell.a) == 2}
    assert linked == {((at, at + 1), (bt,)) for at, bt in ((0, 0), (2, 1), (5, 3), (7, 4), (10, 7), (12, 8))}
    assert [(cell.a, cell.how) for cell in cells if 5 in cell.b] == [((), "unmatched")]
    facts = {"activities": 1, "of_activities": 4}
    assert Note("not_in_provenance", subject="compiled", facts=facts) in notes
    groups = {group.kind: group for group in group_by_cells(a.sequence, work, cells)}
    assert (groups["fused"].how, groups["fused"].repeats) == ("provenance", 2)


def test_steps_of_unknown_beginnings_are_aligned_as_one_and_that_is_said():
    a = replace(A, sequence=Sequence(EAGER, 1, "own"), provenance=eager_ops())
    b = replace(B, sequence=Sequence((*COMPILED, *COMPILED, COPY), 1 / 2, "own"), provenance=compiled_sites())
    cells, _ = find_cells(*with_as_many_steps(a, b))
    check_partition(cells, 8, 5)
    assert all(cell.how != "provenance" for cell in cells)
    assert why_no_provenance(*with_as_many_steps(a, b)) == "steps_differ"


def test_an_empty_step_stands_beside_none_and_nothing_is_said_of_it():
    eager = (*EAGER, COPY, *EAGER, COPY)
    a = replace(A, sequence=Sequence(eager, 1 / 3, "own", starts=(0, 0, 5)), provenance=eager_ops())
    for starts in ((0, 0, 3), (0, 3, 3), (0, 3, 6)):
        work = Sequence((*COMPILED, COPY, *COMPILED, COPY), 1 / 3, "own", starts=starts)
        cells, notes = find_cells(a, replace(B, sequence=work, provenance=compiled_sites()))
        check_partition(cells, 10, 6)
        linked = {(cell.a, cell.b) for cell in cells if cell.how == "provenance" and len(cell.a) == 2}
        assert linked == {((0, 1), (0,)), ((2, 3), (1,)), ((5, 6), (3,)), ((7, 8), (4,))}
        assert all(cell.a and cell.b for cell in cells)
        assert notes == ()


def test_what_ran_beside_an_empty_step_matches_nothing_silently():
    a = replace(A, sequence=Sequence((*EAGER, COPY), 1, "own"), provenance=eager_ops())
    work = Sequence((*COMPILED, COPY, *COMPILED, COPY), 1 / 3, "own", starts=(0, 3, 3))
    cells, notes = find_cells(*with_as_many_steps(a, replace(B, sequence=work, provenance=compiled_sites())))
    check_partition(cells, 15, 6)
    lonely = [cell for cell in cells if not cell.b]
    assert sorted(at for cell in lonely for at in cell.a) == [5, 6, 7, 8, 9]
    assert {cell.how for cell in lonely} == {"unmatched"}
    assert notes == ()


def test_steps_of_the_same_kernels_for_other_operators_are_matched_each_for_itself():
    add, mul = (make_work("elementwise", op, 3) for op in ("aten::add", "aten::mul"))
    a = replace(A, sequence=Sequence((add, mul, add, mul), 1 / 2, "own", starts=(0, 2)))
    b = replace(B, sequence=Sequence((add, mul, mul, add), 1 / 2, "own", starts=(0, 2)))
    cells, _ = find_cells(a, b)
    check_partition(cells, 4, 4)
    pairs = {(cell.a, cell.b) for cell in cells if cell.a and cell.b}
    assert pairs >= {((0,), (0,)), ((1,), (1,))}
    assert not pairs & {((2,), (2,)), ((3,), (3,))}


def test_what_provenance_told_by_elimination_is_no_exact_group():
    ops = eager_ops()
    unlike = tuple(replace(op, outputs=(TensorShape((9, 9), "float32"),)) for op in ops.ops[:2])
    a = replace(A, sequence=Sequence(EAGER, 1, "own"), provenance=replace(ops, ops=(*unlike, *ops.ops[2:])))
    b = replace(B, sequence=Sequence(COMPILED, 1, "own"), provenance=compiled_sites())
    cells, _ = find_cells(a, b)
    assert {cell.a: cell.exact for cell in cells} == {(0, 1): False, (2, 3): True}
    assert sorted(group.exact for group in group_by_cells(a.sequence, b.sequence, cells)) == [False, True]


def test_a_side_whose_steps_are_alike_is_repeated_beside_one_whose_steps_are_not():
    a = replace(A, sequence=Sequence(EAGER, 1, "own"))
    b = replace(B, sequence=Sequence((*COMPILED, *COMPILED, COPY), 1 / 2, "own"))
    one, other = with_as_many_steps(a, b)
    assert (len(one.sequence.activities), one.sequence.per_step) == (8, 1 / 2)
    assert other.sequence == b.sequence
    cells, _ = find_cells(one, other)
    groups = group_by_cells(one.sequence, other.sequence, cells)
    assert sum(group.delta_us for group in groups) == 10 + 2 / 2 - 14
    assert with_as_many_steps(a, a) == (a, a)
