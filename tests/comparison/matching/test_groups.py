from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.comparison.matching.test_alignment import SEQUENCES
from tests.sequences import attention, batched, eager, make_activity, make_sequence, product, triton
from tests.sides import EAGER, Kernels, make_analysis, make_cpu_analysis, make_environment, make_form, make_side

from tracekit.comparison import compare
from tracekit.comparison.matching import Cell, align
from tracekit.comparison.matching.coverage import (
    find_doubts,
    find_inexact,
    find_little_matched,
    measure_coverage,
    total_traffic,
)
from tracekit.comparison.matching.groups import group_by_cells, group_kernels, match_work
from tracekit.model.analysis import FAMILIES
from tracekit.model.comparison import Coverage, GroupKind, GroupMember, KernelGroup, Side
from tracekit.model.groups import Evidence, GroupLabel, KernelCounts
from tracekit.model.note import Note
from tracekit.model.sequence import Activity, Operator, Sequence, Traffic
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


def grouped_by_name(a: Kernels, b: Kernels, *, a_steps: int = 2, b_steps: int = 2) -> dict[str, KernelGroup]:
    one, other = make_analysis(a, steps=a_steps), make_analysis(b, steps=b_steps)
    groups = group_kernels(make_side("a", one), make_side("b", other))
    return {_name(group): group for group in groups}


def _name(group: KernelGroup) -> str:
    """The kernel's name, or the family."""
    return str(group.label.family) if isinstance(group.label, GroupLabel) else group.label


def test_figures_are_per_step_so_recordings_of_different_length_compare():
    doubled = {name: (family, 2 * count, 2 * us) for name, (family, count, us) in EAGER.items()}
    groups = grouped_by_name(EAGER, doubled, a_steps=2, b_steps=4)
    assert {group.kind for group in groups.values()} == {"unchanged"}
    assert all(math.isclose(group.delta_us, 0, abs_tol=1e-9) for group in groups.values())


K = {"k": ("pointwise", 2, 2.0)}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # As many element-wise kernels could be anything.
        ({"add": ("pointwise", 25, 260.0)}, {"triton_a": ("triton", 100, 300.0)}, {"element_wise": "unmatched"}),
        ({"cutlass": ("gemm", 4, 40.0)}, {"nvjet": ("gemm", 4, 30.0)}, {"gemm": "substituted"}),
        # Names do not tell that attention is gone: products may do its work.
        (
            *({"flash": ("attention", 4, 40.0)}, {"bmm": ("gemm", 8, 60.0)}),
            {"attention": "unmatched", "gemm": "unmatched"},
        ),
        ({"Memset (Device)": ("memset", 8, 8.0), **K}, K, {"memset": "unmatched", "k": "unchanged"}),
    ],
)
def test_kernels_of_other_names_are_told_by_their_families(a: Kernels, b: Kernels, expected: dict[str, str]):
    assert {label: group.kind for label, group in grouped_by_name(a, b).items()} == expected
    assert {group.exact for group in grouped_by_name(a, b).values()} == {False}


def test_a_cpu_run_has_no_groups():
    assert group_kernels(make_side("a", make_cpu_analysis()), make_side("b", make_cpu_analysis())) == ()


def make_group(kind: GroupKind, a_us: float, b_us: float, *, exact: bool = True) -> KernelGroup:
    a, b = ((GroupMember(side, 1, us),) if us else () for side, us in (("a", a_us), ("b", b_us)))
    return KernelGroup(kind, kind, "anchors", a, b, 0, b_us - a_us, (), exact=exact)


def test_coverage_counts_what_has_both_sides_and_says_what_is_alone_or_told_by_elimination():
    groups = (
        make_group("unchanged", 40, 30),
        make_group("fused", 20, 10, exact=False),
        make_group("eliminated", 30, 0),
        make_group("added", 0, 40),
        make_group("unmatched", 10, 0),
        make_group("unmatched", 0, 20),
    )
    found = measure_coverage(groups)
    assert (found.a_time_matched, found.b_time_matched) == pytest.approx((0.6, 0.4))
    assert (found.a_time_inexact, found.b_time_inexact) == pytest.approx((0.2, 0.1))
    assert (found.a_time_alone, found.b_time_alone) == pytest.approx((0.3, 0.4))


def test_of_a_side_that_did_nothing_all_is_matched():
    assert measure_coverage((make_group("added", 0, 40),)) == Coverage(1.0, 0.0, b_time_alone=1.0)


NAMES = st.sampled_from([f"kernel_{i}" for i in range(8)])
TIMES = st.tuples(st.sampled_from(FAMILIES), st.integers(1, 50), st.floats(0.01, 1e5))


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(NAMES, TIMES, min_size=1),
    st.dictionaries(NAMES, TIMES, min_size=1),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_every_activity_is_in_exactly_one_group_and_the_changes_add_up(a, b, a_steps, b_steps):
    groups = grouped_by_name(a, b, a_steps=a_steps, b_steps=b_steps).values()
    assert sorted(member.name for group in groups for member in group.a) == sorted(a)
    assert sorted(member.name for group in groups for member in group.b) == sorted(b)
    change = sum(us for _, _, us in b.values()) / b_steps - sum(us for _, _, us in a.values()) / a_steps
    assert math.fsum(group.delta_us for group in groups) == pytest.approx(change, abs=1e-6)


def test_a_kernel_and_a_memory_set_of_one_name_are_told_apart(tmp_path):
    from tests.traces import make_copy, make_kernel, make_trace

    from tracekit.analysis import analyze
    from tracekit.model.comparison import Side

    events = [make_kernel(0, 5, name="fillBuffer"), {**make_copy(6, 9, kind="memset"), "name": "fillBuffer"}]
    side = Side("x", "x", analyze(make_trace(tmp_path, events)), None, None, None)
    assert sorted(group.a[0].total_us for group in group_kernels(side, side)) == [3, 5]


def test_each_side_s_figures_stand_beside_the_peak_of_its_own_device():
    sides = []
    for name, gpu, precision in (("gone", "NVIDIA A100-SXM4-80GB", "high"), ("new", "NVIDIA H200", "highest")):
        activity = make_activity(name, "gemm", "mm", ((64, 64), (64, 64)), 0, 50.0, dtype="float")
        side = make_side(name, make_analysis({name: ("gemm", 1, 50.0)}, steps=1, gpu_name=gpu), make_form())
        environment = make_environment(gpu=gpu, float32_matmul_precision=precision)
        sides.append(replace(side, environment=environment, sequence=make_sequence([activity])))
    groups = group_kernels(*sides, (Cell((0,), (), "anchors"), Cell((), (0,), "anchors")))
    shares = {group.label: group.rates.arithmetic_share for group in groups if group.rates}
    rate = 2 * 64**3 / 50 / 1e6
    # The names do not tell the units; the setting of each run does: tf32 units there, vector units here.
    assert sorted(shares.values()) == [pytest.approx(rate / 156), pytest.approx(rate / 67)]


WORK = make_sequence([product(64, 64, 64, call=0), eager("add", (64, 64), call=1)])


def side(sequence: Sequence | None) -> Side:
    return replace(make_side("graphed"), sequence=sequence)


def test_a_side_without_operators_is_told_what_would_lend_them() -> None:
    (doubt,) = find_doubts(side(WORK), side(replace(WORK, operators="none")))
    assert doubt == Note("no_operators", subject="graphed")


def test_operators_without_shapes_are_said_to_be() -> None:
    bare = (
        replace(each, operator=each.operator and replace(each.operator, dims=(), dtypes=())) for each in WORK.activities
    )
    (doubt,) = find_doubts(side(replace(WORK, activities=tuple(bare))))
    assert doubt == Note("no_shapes", subject="graphed")


def test_sides_that_hardly_match_may_be_of_different_models() -> None:
    (warning,) = find_little_matched(Coverage(0.302, 0.167))
    assert warning == Note("little_matched", facts={"matched_shares": {"A": 0.302, "B": 0.167}})
    assert find_little_matched(Coverage(0.99, 0.95)) == find_little_matched(None) == ()


def test_only_the_side_that_hardly_matches_is_named_and_what_is_known_to_be_gone_counts_as_told() -> None:
    (warning,) = find_little_matched(Coverage(0.5, 1.0))
    assert warning.facts == {"matched_shares": {"A": 0.5}}
    assert find_little_matched(Coverage(0.5, 1.0, a_time_alone=0.45)) == ()


def group(how: str, us: float, *, exact: bool) -> KernelGroup:
    member = GroupMember("kernel", 1.0, us)
    return KernelGroup("substituted", "work", how, (member,), (member,), 0.0, 0.0, (), exact=exact)  # type: ignore[arg-type]


def test_work_that_is_mostly_aligned_by_elimination_is_doubted() -> None:
    (warning,) = find_inexact([group("anchors", 79.0, exact=False), group("anchors", 21.0, exact=True)])
    assert (warning.code, warning.facts["shares"]) == ("matched_by_elimination", {"A": 0.79, "B": 0.79})
    assert find_inexact([group("anchors", 50.0, exact=False), group("anchors", 50.0, exact=True)]) == ()
    assert find_inexact([group("names", 100.0, exact=False)]) == find_inexact([]) == ()


def test_one_note_tells_that_groups_are_doubtful_and_why_provenance_cannot_help() -> None:
    doubtful = [group("anchors", 100.0, exact=False)]
    (both,) = find_inexact(doubtful, "two_runs")
    assert both.facts == {"shares": {"A": 1.0, "B": 1.0}, "no_provenance": "two_runs", "advise_profile": False}
    # What is no use to advise of a run, brings something for a bare trace.
    (of_runs,), (of_traces,) = find_inexact(doubtful, bare=False), find_inexact(doubtful)
    assert (of_runs.facts["advise_profile"], of_traces.facts["advise_profile"]) == (False, True)
    sure = [group("anchors", 100.0, exact=True)]
    (why,) = find_inexact(sure, "two_runs")
    assert why == Note("provenance_unused", "info", facts={"why": "two_runs"})


def moving(a_us: float, b_us: float, traffic: Traffic | None) -> KernelGroup:
    a, b = ((GroupMember("kernel", 1, us),) if us else () for us in (a_us, b_us))
    return KernelGroup("fused", "some", "anchors", a, b, 0, b_us - a_us, (), traffic=traffic)


def test_only_groups_that_are_known_on_both_sides_count_and_their_share_of_the_time_is_told() -> None:
    total = total_traffic(
        [
            moving(30, 10, Traffic(1000, 400, 0, 0)),
            moving(10, 0, Traffic(200, 0, 0, 0)),
            moving(0, 5, Traffic(0, 50, 0, 0)),
            # A call of either side is not known.
            moving(40, 20, Traffic(5000, 100, 1, 0)),
            moving(10, 5, Traffic(5000, None, 0, 1)),
            moving(10, 10, None),
        ]
    )
    assert (total.eager_bytes, total.compiled_bytes, total.removed_bytes) == (1200, 450, 750)
    assert total.a_time_known == pytest.approx(0.4)
    assert total.b_time_known == pytest.approx(0.3)


def test_where_nothing_is_known_there_is_no_total() -> None:
    assert total_traffic([]) is None
    assert total_traffic([moving(10, 10, None), moving(1, 1, Traffic(0, 0, 0, 0))]) is None
