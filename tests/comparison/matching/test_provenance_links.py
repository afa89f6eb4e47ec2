"""Links by provenance, on forms built by hand. tests/measure/test_provenance.py has the real compiler's."""

from collections import abc
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.fuzzing import fuzzed
from tests.sides import make_pair, scaled

from tracekit.comparison.matching.cells import find_cells, why_no_provenance, with_as_many_steps
from tracekit.comparison.matching.groups import group_by_cells
from tracekit.comparison.matching.pairing import Cell, check_partition
from tracekit.comparison.matching.provenance_links import link
from tracekit.model import provenance as prov
from tracekit.model.comparison import Side
from tracekit.model.note import Note
from tracekit.model.sequence import Activity, Operator, Sequence
from tracekit.statements.noted import GraphWithoutSites
from tracekit.statements.notes.matching import (
    AmbiguousLaunchSites,
    NotInProvenance,
    OnlyInProvenance,
    OperatorsLinkedByElimination,
    ProvenanceNoted,
    ProvenanceWithoutWork,
)

FAMILIES = {"gemm": "gemm", "nvjet": "gemm", "flash": "attention", "Memset": "memset", "splitk": "gemm_part"}

#: An eager operator and the kernels it launched; a launch site with the positions of its nodes.
Launched = tuple[prov.EagerOp, abc.Sequence[str]]
Sites = abc.Sequence[tuple[str, abc.Sequence[int] | None]]
Positions = tuple[int, ...]


def make_sequence(names: abc.Sequence[str], steps: int = 1) -> Sequence:
    def family(name: str) -> str:
        return next((kind for begin, kind in FAMILIES.items() if name.startswith(begin)), "other")

    activities = tuple(Activity(name, family(name), 1.0, None) for name in [*names] * steps)
    return Sequence(activities, 1 / steps, "none")


def ran(name: str, *kernels: str, module: str = "m", line: str = "m.py:1") -> Launched:
    """An eager operator, and what it launched."""
    return prov.EagerOp(f"aten.{name}.default", module, line, (prov.TensorShape((8,), "float32"),), 0, None), kernels


def make_eager(*launched: Launched) -> prov.EagerOps:
    activities = [prov.TaggedActivity(kernel, i) for i, (_, kernels) in enumerate(launched) for kernel in kernels]
    return prov.EagerOps(1, "2.13", tuple(op for op, _ in launched), tuple(activities))


_order = count()


def make_node(op: str, line: str | None = "m.py:1", module: str | None = "m") -> prov.GraphNode:
    number, operator = next(_order), f"aten.{op}.default"
    sizes = (prov.TensorShape((8,), "float32"),)
    return prov.GraphNode(f"{op}_{number}", operator, operator, module, line, number, sizes)


def in_call(call: int, *launched: tuple[str, str]) -> list[prov.CompiledActivity]:
    """Kernels with the operator around each; equal operators in a row are one."""
    made: list[prov.CompiledActivity] = []
    ordinal, before = -1, ""
    for name, operator in launched:
        ordinal += operator != before
        before = operator
        made.append(prov.CompiledActivity(name, call, operator, ordinal))
    return made


def outside(name: str) -> list[prov.CompiledActivity]:
    return [prov.CompiledActivity(name, None)]


def replayed(*names: str) -> list[prov.CompiledActivity]:
    return [prov.CompiledActivity(name, 0) for name in names]


LINEAR = ran("addmm", "gemm_eager")
ADD, RELU = ran("add", "vectorized_add", line="m.py:2"), ran("relu", "vectorized_relu", line="m.py:3")
BLOCK = (LINEAR, ADD, RELU)
NODES = [make_node("addmm"), make_node("add", "m.py:2"), make_node("relu", "m.py:3")]
FUSED = "triton_poi_fused_add_relu_0"
SITES: Sites = [("extern_kernels.addmm", [0]), (FUSED, [1, 2])]
RUN = in_call(0, ("nvjet_compiled", "aten::addmm"), (FUSED, FUSED))


def make_compiled(
    run: abc.Sequence[prov.CompiledActivity] = RUN,
    nodes: abc.Sequence[prov.GraphNode] = NODES,
    sites: Sites = SITES,
    modules: abc.Sequence[str | None] = ("m",),
    **changes: Any,
) -> prov.CompiledSites:
    made = tuple(prov.LaunchSite(kernel, None if some is None else tuple(some)) for kernel, some in sites)
    graph = replace(prov.CompiledGraph("k0", False, modules[0], tuple(nodes), made), **changes)
    return prov.CompiledSites(1, "2.13", (graph,), tuple(prov.GraphCall(0, module) for module in modules), tuple(run))


def linked(
    eager: abc.Sequence[Launched], compiled: prov.CompiledSites, steps: int = 1
) -> tuple[tuple[Cell, ...], tuple[Note, ...]]:
    a = make_sequence([kernel for _, kernels in eager for kernel in kernels], steps)
    b = make_sequence([activity.name for activity in compiled.activities], steps)
    return link(a, b, make_eager(*eager), compiled)


def pairs(cells: abc.Iterable[Cell]) -> set[tuple[Positions, Positions]]:
    return {(cell.a, cell.b) for cell in cells}


def pairs_of(eager: abc.Sequence[Launched], *compiled: Any, steps: int = 1) -> set[tuple[Positions, Positions]]:
    return pairs(linked(eager, make_compiled(*compiled), steps)[0])


def told(a: Positions, b: Positions, *where: str, exact: bool = True) -> Cell:
    return Cell(a, b, "provenance", where, exact)


#: The links between these.
BOTH = {told((0,), (0,), "m", "m.py:1"), told((1, 2), (1,), "m", "m.py:2", "m.py:3")}
ADDED = "triton_poi_fused_more_1"


def test_a_fused_kernel_is_linked_to_the_kernels_of_every_operator_in_it() -> None:
    cells, notes = linked(BLOCK, make_compiled())
    assert (set(cells), notes) == (BOTH, ())
    assert pairs_of(BLOCK, steps=2) == {((0, 3), (0, 2)), ((1, 2, 4, 5), (1, 3))}


@pytest.mark.parametrize(
    ("op", "node", "nodes_of_site", "link", "code"),
    [
        # Computed again in a second kernel it counts once.
        ("mul", make_node("mul", "m.py:4"), [1, 3], told((3,), (2,), "m", "m.py:4"), None),
        # A node that needs no launch is work saved; of an operator that no graph knows that is not exact.
        ("cat", make_node("cat", "m.py:4"), (), told((3,), (), "m", "m.py:4"), None),
        ("clone", None, (), told((3,), (), "m", "m.py:4", exact=False), "operators_without_counterpart"),
        # A site of no operator is work added.
        (
            *(None, make_node("arange", "mask.py:9", "m.mask"), [3]),
            *(told((), (2,), "m.mask", "mask.py:9", exact=False), "unexplained_launch_sites"),
        ),
        # An operator and a site of one module that lack a partner, or a site that Inductor tells nothing of, are left.
        ("sum", make_node("arange", "m.py:9"), [3], None, "unexplained_launch_sites"),
        ("sum", None, None, None, "unexplained_launch_sites"),
    ],
)
def test_one_more_operator_or_site_is_linked_as_far_as_it_is_known(op, node, nodes_of_site, link, code):
    """`nodes_of_site` are those of one more site; empty where there is none, None where Inductor does not say."""
    more = [ran(op, "kernel", line="m.py:4")] if op else []
    has_site = nodes_of_site is None or len(nodes_of_site) > 0
    sites = [*SITES, *([(ADDED, nodes_of_site)] if has_site else [])]
    run = [*RUN, *([prov.CompiledActivity(ADDED, 0, ADDED, 2)] if has_site else [])]
    cells, notes = linked([*BLOCK, *more], make_compiled(run, [*NODES, *([node] if node else [])], sites))
    assert set(cells) == BOTH | ({link} if link else set())
    assert code is None or code in [note.code for note in notes]


def test_a_library_call_takes_all_that_it_launched() -> None:
    eager = ran("addmm", "Memset", "gemm_eager", "splitk_reduce"), ADD, RELU
    run = in_call(0, ("nvjet", "aten::addmm"), ("splitk", "aten::addmm"), (FUSED, FUSED))
    assert pairs_of(eager, run) == {((0, 1, 2), (0, 1)), ((3, 4), (2,))}


def test_views_neither_link_nor_count() -> None:
    sites = [SITES[0], (FUSED, [1, 2, 3])]
    found = pairs_of((LINEAR, ran("view"), ADD, RELU), RUN, [*NODES, make_node("view")], sites)
    assert found == {((0,), (0,)), ((1, 2), (1,))}


def test_a_library_call_that_lists_its_inputs_is_linked_to_itself_alone() -> None:
    name = "_scaled_dot_product_flash_attention"
    sites: Sites = [("triton_poi_fused_add_0", [0]), (f"torch.ops.aten.{name}.default", [0, 1])]
    run = in_call(0, ("triton_poi_fused_add_0",) * 2, ("flash_fwd", f"aten::{name}"))
    eager = ran("add", "vectorized_add"), ran(name, "flash_fwd", line="m.py:2")
    assert pairs_of(eager, run, [make_node("add"), make_node(name, "m.py:2")], sites) == {((0,), (0,)), ((1,), (1,))}


def test_copies_into_a_cuda_graph_are_work_added() -> None:
    run = [*in_call(0, ("multi_tensor_apply", "aten::_foreach_copy_")), *replayed("nvjet_compiled", FUSED)]
    assert pairs_of(BLOCK, run) == {((), (0,)), ((0,), (1,)), ((1, 2), (2,))}


def test_a_replay_without_operators_is_told_apart_by_names_and_families() -> None:
    nodes = [make_node("addmm"), make_node("mm", "m.py:2"), make_node("relu", "m.py:3")]
    sites: Sites = [("extern_kernels.addmm", [0]), ("extern_kernels.mm", [1]), ("triton_poi_fused_relu_0", [2])]
    run = replayed("nvjet_a", "splitk_reduce", "Memset", "nvjet_b", "triton_poi_fused_relu_0")
    eager = LINEAR, ran("mm", "gemm_b", line="m.py:2"), RELU
    assert pairs_of(eager, run, nodes, sites) == {((0,), (0, 1)), ((1,), (2, 3)), ((2,), (4,))}


MULTIPLIED = [(f"triton_poi_fused_mul_{i}", [i]) for i in range(3)]


@pytest.mark.parametrize(
    ("eager", "nodes", "sites", "run", "link", "note"),
    [
        # Library calls of a replay that cannot be told apart.
        (
            [LINEAR, ran("sort", "radix", line="m.py:2")],
            [make_node("addmm"), make_node("sort", "m.py:2")],
            [("extern_kernels.addmm", [0]), ("torch.ops.aten.sort.default", [1])],
            replayed("nvjet", "radix", "radix"),
            *(((0, 1), (0, 1, 2)), AmbiguousLaunchSites(1)),
        ),
        # Unequal numbers.
        (
            [ran("mul", "mul_a"), ran("mul", "mul_b")],
            *([make_node("mul") for _ in range(3)], MULTIPLIED, in_call(0, *((name, name) for name, _ in MULTIPLIED))),
            ((0, 1), (0, 1, 2)),
            OperatorsLinkedByElimination(2, 2),
        ),
        # An operator that became another on its line.
        (
            [ran("_scaled_dot_product_flash_attention", "flash_fwd")],
            [make_node("bmm"), make_node("_softmax")],
            [("extern_kernels.bmm", [0]), ("triton_per_fused__softmax_0", [1])],
            in_call(0, ("gemm", "aten::bmm"), ("triton_per_fused__softmax_0",) * 2),
            ((0,), (0, 1)),
            OperatorsLinkedByElimination(1, 1),
        ),
    ],
)
def test_what_cannot_be_told_apart_is_linked_together_and_said(eager, nodes, sites, run, link, note):
    cells, notes = linked(eager, make_compiled(run, nodes, sites))
    assert [(cell.a, cell.b, cell.exact) for cell in cells] == [(*link, False)]
    assert note in notes


def test_one_graph_for_several_modules_is_linked_call_by_call() -> None:
    nodes = [make_node("relu", "b.py:1", "m.0"), make_node("tanh", "b.py:2", None)]
    names = ("triton_poi_fused_relu_0", "triton_poi_fused_tanh_1")
    run = [each for call in range(2) for each in in_call(call, *((name, name) for name in names))]
    eager = [
        ran(op, f"vectorized_{op}", module=f"m.{i}", line=f"b.py:{line}")
        for i in range(2)
        for line, op in ((1, "relu"), (2, "tanh"))
    ]
    cells, _ = linked(eager, make_compiled(run, nodes, [(names[0], [0]), (names[1], [1])], ("m.0", "m.1")))
    assert pairs(cells) == {((i,), (i,)) for i in range(4)}
    assert all(cell.exact for cell in cells)


def test_what_was_not_compiled_is_linked_kernel_by_kernel() -> None:
    before, after = ran("embedding", "embedding", module="t5", line="t.py:1"), ran("exp", "exp", module="", line="p:1")
    run = [*outside("embedding"), *RUN, *outside("exp")]
    cells, _ = linked([before, *BLOCK, after], make_compiled(run))
    assert {told((0,), (0,), "t5", "t.py:1"), told((4,), (3,), "p:1")} < set(cells)
    assert len(cells) == 4


@pytest.mark.parametrize(("kernel", "linked_too"), [("nonzero", {told((3,), (2,), "m", "m.py:9")}), ("another", set())])
def test_what_runs_between_two_graphs_of_a_broken_model_is_not_taken_for_work_saved(kernel, linked_too):
    cells, _ = linked([*BLOCK, ran("nonzero", "nonzero", line="m.py:9")], make_compiled([*RUN, *outside(kernel)]))
    assert set(cells) == BOTH | linked_too


def test_a_node_without_a_line_is_the_work_of_an_operator_of_its_module() -> None:
    """As of a module of torch's alone: dropout is `bernoulli_`, `div_` and `mul` in eager code."""
    eager = [ran("gelu", "gelu"), *(ran(name, name) for name in ("bernoulli_", "div_", "mul"))]
    nodes = [make_node("gelu", None), make_node("native_dropout", None)]
    (cell,), _ = linked(eager, make_compiled(in_call(0, (FUSED, FUSED)), nodes, [(FUSED, [0, 1])]))
    assert (cell.a, cell.b, cell.exact) == ((0, 1, 2, 3), (0,), False)


def test_where_numbers_differ_what_is_left_is_not_taken_for_work_saved() -> None:
    """One operator twice of three that a line has: which nodes are whose is not certain."""
    eager = [ran("mul", "mul_a"), ran("mul", "mul_b"), ran("square", "square")]
    run = in_call(0, *((name, name) for name, _ in MULTIPLIED))
    cells, _ = linked(eager, make_compiled(run, [make_node("mul") for _ in range(3)], MULTIPLIED))
    assert pairs(cells) == {((0, 1), (0, 1, 2))}


def test_a_graph_without_provenance_leaves_its_kernels_to_others_and_says_so() -> None:
    why = "cached_without_provenance"
    noted = GraphWithoutSites(graph=0, why=why)
    compiled = replace(make_compiled(RUN, [], [], without=why), noted=(noted,))
    cells, notes = linked(BLOCK, compiled)
    assert not [cell for cell in cells if cell.b]
    assert ProvenanceNoted(noted) in notes


def test_sides_without_provenance_have_no_reason_for_it() -> None:
    one, other = make_pair(scaled(10.0), scaled(5.0))
    assert one.provenance is None and why_no_provenance(one, other) is None
    assert why_no_provenance(replace(one, provenance=make_eager(LINEAR)), other) == "other_forms"


def test_without_gpu_work_nothing_is_linked() -> None:
    found = link(make_sequence(["x"]), make_sequence(["x"]), make_eager(LINEAR), make_compiled([]))
    assert found == ((), (ProvenanceWithoutWork(),))


@pytest.mark.parametrize(
    ("names", "links", "note"),
    [
        (
            *(["gemm_eager", "stranger", "vectorized_add", "vectorized_relu"], {((0,), (0,)), ((2, 3), (1,))}),
            NotInProvenance("eager", 1, 4),
        ),
        (
            *(["gemm_eager", "vectorized_relu"], {((0,), (0,)), ((1,), (1,))}),
            OnlyInProvenance("eager", 1),
        ),
    ],
)
def test_kernels_that_one_recording_alone_has_are_left_out_and_counted(
    names: list[str], links: Any, note: Note
) -> None:
    b = make_sequence([each.name for each in RUN])
    cells, notes = link(make_sequence(names), b, make_eager(*BLOCK), make_compiled())
    assert (pairs(cells), notes) == (links, (note,))


@fuzzed(40)
@given(st.data())
def test_no_position_is_ever_in_two_links(data: st.DataObject) -> None:
    """Whatever the recordings have more or less than the run that was asked."""
    eager = make_eager(*BLOCK, ran("cat", "CatArray", line="m.py:4"))
    run = [*outside("embedding"), *RUN, *replayed("Memset"), *outside("exp")]
    compiled = make_compiled(run, [*NODES, make_node("cat", "m.py:4")])
    names = sorted({each.name for each in (*eager.activities, *compiled.activities)})
    some = st.lists(st.sampled_from(names), max_size=12)
    a, b = make_sequence(data.draw(some)), make_sequence(data.draw(some))
    cells, _ = link(a, b, eager, compiled)
    for used, sequence in (([i for each in cells for i in each.a], a), ([i for each in cells for i in each.b], b)):
        assert len(used) == len(set(used))
        assert set(used) <= set(range(len(sequence.activities)))
    assert all(each.a or each.b for each in cells)


LINE = "model.py:7"
FUSED_MUL = "triton_poi_fused_add_mul_0"
COPY = Activity("Memcpy DtoH (Device -> Pageable)", "memcpy", 2, None)


def make_work(name: str, op: str, us: float, family: str = "pointwise") -> Activity:
    return Activity(name, family, us, Operator(op, ((4, 8),), ("float",)))


#: Of two equal blocks: an addition and a product of elements, which the compiled form does in one kernel; behind them
#: a copy that nobody was asked about.
EAGER = (make_work("add", "aten::add", 3), make_work("mul", "aten::mul", 4)) * 2
COMPILED = (make_work(FUSED_MUL, FUSED_MUL, 5, "triton"),) * 2
PARTS = [(name, f"blocks.{block}") for block in (0, 1) for name in ("add", "mul")]
OPS = make_eager(*(ran(name, name, module=module, line=LINE) for name, module in PARTS))
OPS = replace(OPS, activities=(*OPS.activities, prov.TaggedActivity(COPY.name, None)))
GRAPH = make_compiled(
    [*(prov.CompiledActivity(FUSED_MUL, 0, FUSED_MUL, i) for i in (0, 1)), *outside(COPY.name)],
    [make_node(name, LINE, module) for name, module in PARTS],
    [(FUSED_MUL, (0, 1)), (FUSED_MUL, (2, 3))],
    (None,),
)
A, B = make_pair(scaled(1.5), scaled(1.1))


def eager_side(*work: Activity, steps: int = 1, starts: Positions = (), ops: prov.EagerOps | None = OPS) -> Side:
    return replace(A, sequence=Sequence(work or EAGER, 1 / steps, "own", starts), provenance=ops)


def compiled_side(*work: Activity, steps: int = 1, starts: Positions = (), **changes: Any) -> Side:
    sequence = Sequence(work or COMPILED, 1 / steps, "own", starts)
    return replace(B, sequence=sequence, provenance=GRAPH, **changes)


def cells_of(a: Side, b: Side) -> tuple[tuple[Cell, ...], tuple[Note, ...]]:
    cells, notes = find_cells(a, b)
    assert cells is not None
    check_partition(cells, len(a.sequence.activities), len(b.sequence.activities))
    return cells, notes


def through_provenance(cells: abc.Iterable[Cell]) -> set[tuple[Positions, Positions]]:
    """The links of fused kernels."""
    return pairs(cell for cell in cells if cell.how == "provenance" and len(cell.a) == 2)


def test_provenance_comes_first_and_alignment_takes_the_rest():
    cells, amiss = cells_of(eager_side(*EAGER, COPY), compiled_side(*COMPILED, COPY))
    assert through_provenance(cells) == {((0, 1), (0,)), ((2, 3), (1,))}
    assert pairs(cells) == {((0, 1), (0,)), ((2, 3), (1,)), ((4,), (2,))}
    assert amiss == ()


def test_equal_blocks_are_one_group_under_the_pattern_of_their_modules():
    a, b = eager_side(), compiled_side()
    (group,) = group_by_cells(a.sequence, b.sequence, cells_of(a, b)[0])
    assert (group.kind, group.how, group.repeats) == ("fused", "provenance", 2)
    assert group.where == ("blocks.*", LINE)
    assert (group.delta_count, group.delta_us) == (-2, -4)
    # Each addition and product reads one tensor of 128 bytes and writes one; so does what is fused of them.
    assert group.traffic.eager_bytes == 2 * 2 * 256


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (eager_side(), compiled_side(path="two/compiled-light.json"), "two_runs"),
        (compiled_side(), eager_side(), "other_forms"),
        # Nobody knows where each step begins.
        (eager_side(), compiled_side(*COMPILED, *COMPILED, COPY, steps=2), "steps_differ"),
    ],
)
def test_provenance_is_of_no_use_across_runs_backwards_or_to_steps_of_unknown_beginnings(a: Side, b: Side, reason: str):
    a, b = with_as_many_steps(a, b)
    assert all(cell.how != "provenance" for cell in cells_of(a, b)[0])
    assert why_no_provenance(a, b) == reason


def test_one_step_that_differs_costs_the_others_no_provenance():
    stranger = Activity("Memset (Device)", "memset", 1, None)
    work = (*COMPILED, COPY, *COMPILED, stranger, COPY, *COMPILED, COPY)
    a, b = with_as_many_steps(eager_side(*EAGER, COPY), compiled_side(*work, steps=3, starts=(0, 3, 7)))
    assert a.sequence.starts == (0, 5, 10)
    cells, notes = cells_of(a, b)
    expected = ((0, 0), (2, 1), (5, 3), (7, 4), (10, 7), (12, 8))
    assert through_provenance(cells) == {((at, at + 1), (bt,)) for at, bt in expected}
    assert [(cell.a, cell.how) for cell in cells if 5 in cell.b] == [((), "unmatched")]
    assert NotInProvenance("compiled", 1, 4) in notes
    groups = {group.kind: group for group in group_by_cells(a.sequence, b.sequence, cells)}
    assert (groups["fused"].how, groups["fused"].repeats) == ("provenance", 2)


@pytest.mark.parametrize("starts", [(0, 0, 3), (0, 3, 3), (0, 3, 6)])
def test_an_empty_step_stands_beside_none_and_nothing_is_said_of_it(starts: Positions):
    a = eager_side(*EAGER, COPY, *EAGER, COPY, steps=3, starts=(0, 0, 5))
    cells, notes = cells_of(a, compiled_side(*COMPILED, COPY, *COMPILED, COPY, steps=3, starts=starts))
    assert through_provenance(cells) == {((0, 1), (0,)), ((2, 3), (1,)), ((5, 6), (3,)), ((7, 8), (4,))}
    assert all(cell.a and cell.b for cell in cells)
    assert notes == ()


def test_what_ran_beside_an_empty_step_matches_nothing_silently():
    b = compiled_side(*COMPILED, COPY, *COMPILED, COPY, steps=3, starts=(0, 3, 3))
    cells, notes = cells_of(*with_as_many_steps(eager_side(*EAGER, COPY), b))
    lonely = [cell for cell in cells if not cell.b]
    assert sorted(at for cell in lonely for at in cell.a) == [5, 6, 7, 8, 9]
    assert {cell.how for cell in lonely} == {"unmatched"}
    assert notes == ()


def test_steps_of_the_same_kernels_for_other_operators_are_matched_each_for_itself():
    add, mul = (make_work("elementwise", op, 3) for op in ("aten::add", "aten::mul"))
    a = eager_side(add, mul, add, mul, steps=2, starts=(0, 2), ops=None)
    cells, _ = cells_of(a, eager_side(add, mul, mul, add, steps=2, starts=(0, 2), ops=None))
    found = pairs(cell for cell in cells if cell.a and cell.b)
    assert found >= {((0,), (0,)), ((1,), (1,))}
    assert not found & {((2,), (2,)), ((3,), (3,))}


def test_what_provenance_told_by_elimination_is_no_exact_group():
    unlike = tuple(replace(op, outputs=(prov.TensorShape((9, 9), "float32"),)) for op in OPS.ops[:2])
    a, b = eager_side(ops=replace(OPS, ops=(*unlike, *OPS.ops[2:]))), compiled_side()
    cells, _ = cells_of(a, b)
    assert {cell.a: cell.exact for cell in cells} == {(0, 1): False, (2, 3): True}
    assert sorted(group.exact for group in group_by_cells(a.sequence, b.sequence, cells)) == [False, True]


def test_a_side_whose_steps_are_alike_is_repeated_beside_one_whose_steps_are_not():
    a, b = eager_side(ops=None), compiled_side(*COMPILED, *COMPILED, COPY, steps=2)
    one, other = with_as_many_steps(a, b)
    assert (len(one.sequence.activities), one.sequence.per_step) == (8, 1 / 2)
    assert other.sequence == b.sequence
    groups = group_by_cells(one.sequence, other.sequence, cells_of(one, other)[0])
    assert sum(group.delta_us for group in groups) == 10 + 2 / 2 - 14
    assert with_as_many_steps(a, a) == (a, a)
