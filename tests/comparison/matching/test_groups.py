from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.comparison.matching.test_alignment import SEQUENCES
from tests.sequences import attention, batched, eager, make_activity, make_sequence, product, triton

from tracekit.comparison import compare
from tracekit.comparison.matching import Cell, align
from tracekit.comparison.matching.groups import group_by_cells, match_work
from tracekit.model.comparison import KernelGroup, Side
from tracekit.model.groups import Evidence, GroupLabel, KernelCounts
from tracekit.model.sequence import Activity, Operator, Traffic
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side


def grouped(a: list[Activity], b: list[Activity], **changes: float) -> tuple[KernelGroup, ...]:
    one, other = make_sequence(a, **changes), make_sequence(b, **changes)
    return group_by_cells(one, other, align(one, other))


def only(a: list[Activity], b: list[Activity]) -> KernelGroup:
    """The one group that has changed."""
    (group,) = [group for group in grouped(a, b) if group.kind != "unchanged"]
    return group


OPERATORS = ("rms_norm", "mul", "add", "gelu", "tanh", "exp")


def block(call: int, count: int = 3) -> list[Activity]:
    """A product and behind it so many operators."""
    return [
        product(64, 64, 64, call=call),
        *(eager(each, (64, 64), call=call + 1 + at) for at, each in enumerate(OPERATORS[:count])),
    ]


def fused_block(call: int, count: int = 3) -> list[Activity]:
    names = "_".join(sorted(OPERATORS[:count]))
    return [product(64, 64, 64, call=call, within="addmm"), triton(f"_fused_{names}", (64, 64), call=call + 1)]


def test_repeats_are_those_of_a_and_of_b_where_a_has_nothing() -> None:
    one, other = make_sequence(block(0)), make_sequence([*fused_block(0), *fused_block(10)], per_step=0.5)
    cells = (Cell((0,), (0, 2), "anchors"), Cell((1, 2, 3), (1,), "anchors"), Cell((), (3,), "anchors"))
    assert {group.kind: group.repeats for group in group_by_cells(one, other, cells)} == {
        "defused": 1,
        "fused": 1,
        "added": 0.5,
    }


def test_groups_told_by_elimination_stand_apart_from_those_told_one_by_one() -> None:
    a, b = make_sequence([*block(0), *block(10)]), make_sequence([*fused_block(0), *fused_block(10)])
    cells = (
        Cell((0,), (0,), "anchors"),
        Cell((4,), (2,), "anchors", exact=False),
        Cell((1, 2, 3), (1,), "anchors"),
        Cell((5, 6, 7), (3,), "anchors"),
    )
    found = [(group.kind, group.exact, group.repeats) for group in group_by_cells(a, b, cells)]
    assert sorted(found) == [("fused", True, 2), ("unchanged", False, 1), ("unchanged", True, 1)]


CAUSAL = (*("",) * 8, "False", "0.", "True")


def cudnn(
    shape: tuple[int, ...], us: float, *, mask: tuple[int, ...] = (), values: tuple[str, ...] = CAUSAL
) -> Activity:
    dims = ((1, 8, 512, 256), shape, shape, mask)
    operator = Operator("aten::_cudnn_attention_forward", dims, ("c10::BFloat16",) * 4, values)
    return Activity("cudnn_flash_fprop", "attention", us, operator, (operator.name,), 0)


def test_attention_that_was_given_a_mask_says_what_differs_and_what_it_costs() -> None:
    before = cudnn((1, 1, 512, 256), 16.0)
    after = cudnn((1, 8, 512, 256), 34.0, mask=(1, 1, 512, 512), values=(*CAUSAL[:-1], "False"))
    (group,) = grouped([before], [after])
    assert group.kind == "substituted"
    grown = {"before": [1, 1, 512, 256], "after": [1, 8, 512, 256]}
    differences = {
        "is_causal": {"before": True, "after": False},
        "mask": {"before": None, "after": [1, 1, 512, 512]},
        "key": grown,
        "value": grown,
    }
    assert group.evidence == (
        Evidence("attention_asked_otherwise", differences),
        Evidence("same_kernel_other_time", {"before_us": 16.0, "after_us": 34.0}),
    )


def test_attention_by_another_operator_says_so() -> None:
    before = attention(8, 16, 32, call=0)
    operator = replace(before.operator, name="aten::_efficient_attention_forward")  # type: ignore[type-var]
    (group,) = grouped([before], [replace(before, name="fmha_cutlassF", operator=operator)])
    assert group.kind == "substituted"
    operators = {"before": "aten::_scaled_dot_product_cudnn_attention", "after": "aten::_efficient_attention_forward"}
    assert group.evidence[-1] == Evidence("attention_asked_otherwise", {"operator": operators})


def test_repeated_blocks_are_one_group_with_their_number() -> None:
    a = [each for at in range(0, 380, 10) for each in block(at)]
    b = [each for at in range(0, 380, 10) for each in fused_block(at)]
    group = only(a, b)
    assert (group.kind, group.repeats, group.how) == ("fused", 38, "anchors")
    counts = KernelCounts(3, 0, ()), KernelCounts(1, 1, ())
    assert group.label == GroupLabel("fused", 38, *counts, ("rms_norm", "mul", "add"))
    assert (group.delta_count, group.delta_us) == (38 - 3 * 38, pytest.approx(38 * (12 - 30)))


def test_work_of_a_few_shapes_stays_apart_and_a_loop_that_grows_is_one() -> None:
    def both(lengths: range) -> tuple[list[Activity], list[Activity]]:
        a = [eager("cat", (length, 64), call=length) for length in lengths]
        return a, [triton("cat", (length, 64), call=length) for length in lengths]

    assert sorted(group.repeats for group in grouped(*both(range(100, 103)))) == [1, 1, 1]
    assert [group.repeats for group in grouped(*both(range(100, 120)))] == [20]


def test_an_attention_kernel_that_became_products_in_float32_is_defused_with_evidence() -> None:
    a = [product(64, 64, 64, call=0), attention(8, 16, 32, call=1)]
    b = [
        product(64, 64, 64, call=0),
        batched(8, 16, 16, 32, call=1),
        triton("_safe_softmax", (8, 16, 16), call=2),
        batched(8, 16, 32, 16, call=3),
    ]
    group = only(a, b)
    assert group.kind == "defused"
    assert group.evidence == (
        Evidence("attention_lost", {"kernel": "flash_fprop", "products": 2, "other_kernels": 1}),
        Evidence("single_precision", {"products": 2, "before": "bfloat16"}),
    )


def test_a_product_that_lost_its_bias_and_was_split_says_so() -> None:
    before = product(64, 64, 4096, call=0, kernel="gemm_128x64_bias")
    parts = replace(before, name="gemm_64x64_splitK")
    after = [
        make_activity("direct_copy_kernel", "copy", "addmm", before.operator.dims if before.operator else (), 0),
        parts,
        replace(parts, name="splitKreduce_kernel"),
    ]
    group = only([before], after)
    assert group.kind == "substituted"
    assert group.evidence == (
        Evidence("epilogue_lost", {"kernels_beside": 1}),
        Evidence("split_along_k", {"is_split": True}),
        Evidence("other_kernel", {"before": "gemm_128x64_bias", "after": "gemm_64x64_splitK"}),
    )


def test_cells_may_come_from_several_places_at_once() -> None:
    a, b = make_sequence(block(0)), make_sequence(fused_block(0))
    cells = (Cell((0,), (0,), "anchors"), Cell((1, 2, 3), (1,), "provenance", ("model.py:12", "block.0.norm")))
    groups = {group.how: group for group in group_by_cells(a, b, cells)}
    assert groups["provenance"].where == ("model.py:12", "block.0.norm")
    assert groups["provenance"].kind == "fused"
    assert groups["anchors"].kind == "unchanged"


def test_cells_that_leave_something_out_are_refused() -> None:
    one = make_sequence(block(0))
    with pytest.raises(AssertionError, match="not each of 4 once"):
        group_by_cells(one, one, (Cell((0,), (0,), "provenance"),))


@settings(max_examples=80, deadline=None)
@given(SEQUENCES, SEQUENCES)
def test_the_groups_of_any_two_sequences_add_up_to_the_change(a: list[Activity], b: list[Activity]) -> None:
    groups = grouped(a, b)
    change = math.fsum(each.duration_us for each in b) - math.fsum(each.duration_us for each in a)
    assert math.fsum(group.delta_us for group in groups) == pytest.approx(change, abs=1e-6)
    assert sum(group.delta_count for group in groups) == len(b) - len(a)


def one_cell_each(count: int) -> tuple[Cell, ...]:
    return tuple(Cell((at,), (at,), "provenance") for at in range(count))


def test_traffic_is_the_sum_of_all_pieces_not_the_first_over_and_over() -> None:
    sizes = range(10, 20)
    a = [eager("add", (size, 64), (size, 64), call=size) for size in sizes]
    b = [triton("_add", (size, 64), (size, 64), (size, 64), call=size) for size in sizes]
    (group,) = group_by_cells(make_sequence(a), make_sequence(b), one_cell_each(10))
    assert group.repeats == 10
    assert group.traffic.eager_bytes == sum(3 * size * 64 * 2 for size in sizes)
    assert group.traffic.compiled_bytes == sum(3 * size * 64 * 2 for size in sizes)


def test_what_differs_in_size_on_b_alone_stays_apart() -> None:
    a = [eager("add", (8, 64), (8, 64), call=at) for at in range(3)]
    b = [triton("_add", (8 * (1 + at), 64), (8, 64), (8, 64), call=at) for at in range(3)]
    groups = group_by_cells(make_sequence(a), make_sequence(b), one_cell_each(3))
    compiled = sorted(group.traffic.compiled_bytes or 0 for group in groups if group.traffic)
    assert compiled == [(8 * (1 + at) + 16) * 64 * 2 for at in range(3)]
    wide = make_activity(b[0].name, "triton", b[0].name, ((8, 64),) * 3, 1, dtype="float")
    assert len(group_by_cells(make_sequence(a), make_sequence([b[0], wide, wide]), one_cell_each(3))) == 2


def test_each_side_s_traffic_is_per_its_own_steps() -> None:
    a, b = eager("add", (8, 64), (8, 64), call=0), triton("_add", (8, 64), (8, 64), (8, 64), call=0)
    bytes_ = 3 * 8 * 64 * 2
    cells = (Cell((0,), (0,), "provenance"), Cell((), (1,), "anchors"))
    two = make_sequence([b, triton("_mul", (8, 64), (8, 64), (8, 64), call=1)], per_step=0.5)
    fused, added = group_by_cells(make_sequence([a]), two, cells)
    assert (fused.traffic.eager_bytes, fused.traffic.compiled_bytes) == (bytes_, bytes_ / 2)
    # A is empty here: B's figures are B's.
    assert (added.traffic.eager_bytes, added.traffic.compiled_bytes) == (0, bytes_ / 2)


def test_rates_are_those_of_the_longest_call_and_of_its_mean_time() -> None:
    a = [eager("add", (8, 64), (8, 64), call=0)]
    short = triton("_add", (1024, 64), (1024, 64), call=0, us=2.0)
    b = [short, replace(product(64, 64, 64, call=1), duration_us=30.0)]
    (group,) = group_by_cells(make_sequence(a), make_sequence(b), (Cell((0,), (0, 1), "provenance"),))
    assert group.rates.flops == 2 * 64**3
    assert group.rates.tflop_per_s == pytest.approx(2 * 64**3 / 30 / 1e6)


def test_a_call_whose_kernels_stand_in_several_groups_counts_in_that_of_its_main_one() -> None:
    main = product(64, 64, 64, call=3)
    parts = [replace(main, name="Memset (Device)", family="memset", duration_us=1.0), main]
    sequence = make_sequence(parts)
    groups = group_by_cells(sequence, sequence, one_cell_each(2))
    told = {group.label: (group.traffic, group.rates) for group in groups}
    assert told["Memset (Device)"] == (Traffic(0, 0, 0, 0), None)
    traffic, rates = told[main.name]
    assert traffic.eager_bytes == traffic.compiled_bytes == 2 * (64 + 3 * 64 * 64)
    assert rates.tflop_per_s == pytest.approx(2 * 64**3 / 51 / 1e6)


def test_what_is_gone_moved_what_it_moved_and_what_is_added_moves_more() -> None:
    a = make_sequence([eager("add", (8, 64), (8, 64), call=0)])
    bytes_ = 3 * 8 * 64 * 2
    (gone,) = group_by_cells(a, make_sequence([]), (Cell((0,), (), "provenance"),))
    (added,) = group_by_cells(make_sequence([]), a, (Cell((), (0,), "provenance"),))
    assert (gone.traffic.removed_bytes, added.traffic.removed_bytes) == (bytes_, -bytes_)


def test_numbers_in_names_of_triton_kernels_part_no_group_whichever_side_they_are_on() -> None:
    fused = make_sequence([triton("add", (64,), call=number, number=number) for number in range(3)])
    plain = make_sequence([eager("add", (64,), call=number) for number in range(3)])
    cells = tuple(Cell((at,), (at,), "anchors") for at in range(3))
    assert len(group_by_cells(fused, plain, cells)) == len(group_by_cells(plain, fused, cells)) == 1


RUN = Path(__file__).parents[3] / "traces" / "h200-vit"


@pytest.fixture(scope="module")
def sides() -> tuple[Side, Side]:
    reading = Reading(shapes=True, cached=False)
    return load_side(RUN, form="eager", reading=reading), load_side(RUN, form="compiled", reading=reading)


def test_every_activity_is_in_one_piece_of_the_groups_that_the_comparison_shows(sides: tuple[Side, Side]) -> None:
    matching = match_work(*sides)
    assert sorted(at for work in matching.work for at in work.a) == list(range(len(matching.a.activities)))
    assert sorted(at for work in matching.work for at in work.b) == list(range(len(matching.b.activities)))
    shown = {(group.kind, group.label, round(group.delta_us, 6)) for group in compare(*sides).groups}
    assert {(work.group.kind, work.group.label, round(work.group.delta_us, 6)) for work in matching.work} == shown
    lost = [work for work in matching.work if work.group.kind == "defused"]
    assert len(lost) == 12
    assert {(len(work.a), len(work.b)) for work in lost} == {(2, 7)}


def test_nothing_is_matched_where_activities_are_not_known_one_by_one(sides: tuple[Side, Side]) -> None:
    assert match_work(replace(sides[0], sequence=None), sides[1]) is None


def test_nothing_is_matched_between_a_step_and_a_whole_recording(sides: tuple[Side, Side]) -> None:
    whole = load_side(RUN, form="eager", reading=Reading(window="whole", shapes=True, cached=False))
    assert match_work(whole, sides[1]) is None
