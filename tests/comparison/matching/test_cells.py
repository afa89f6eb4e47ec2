from __future__ import annotations

from dataclasses import replace

from tests.sides import make_pair, scaled

from tracekit.comparison.matching import check_partition
from tracekit.comparison.matching.cells import find_cells, why_no_provenance, with_as_many_steps
from tracekit.comparison.matching.groups import group_by_cells
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

A, B = make_pair(scaled(1.5), scaled(1.1))
SHAPE = (TensorShape((4, 8), "float32"),)
LINE = "model.py:7"
FUSED = "triton_poi_fused_add_mul_0"


def make_activity(name: str, op: str, us: float, family: str = "pointwise") -> Activity:
    return Activity(name, family, us, Operator(op, ((4, 8),), ("float",)))


#: Of two equal blocks: an addition and a product of elements, which the compiled form does in one kernel; behind them
#: a copy that nobody was asked about.
EAGER = tuple(
    activity
    for _ in range(2)
    for activity in (make_activity("add", "aten::add", 3), make_activity("mul", "aten::mul", 4))
)
COMPILED = tuple(make_activity(FUSED, FUSED, 5, "triton") for _ in range(2))
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
    add, mul = (make_activity("elementwise", op, 3) for op in ("aten::add", "aten::mul"))
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
