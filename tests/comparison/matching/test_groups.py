import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.comparison.matching.test_alignment import SEQUENCES, without_operators
from tests.fuzzing import fuzzed
from tests.sequences import eager, make_activity, make_sequence, product, triton
from tests.sides import Kernels, make_analysis, make_cpu_analysis, make_environment, make_form, make_side
from tests.traces import analyze, make_copy, make_kernel, make_trace

from tracekit.comparison.comparing import compare
from tracekit.comparison.matching.alignment import align
from tracekit.comparison.matching.coverage import (
    find_doubts,
    find_inexact,
    find_little_matched,
    measure_coverage,
    total_traffic,
)
from tracekit.comparison.matching.groups import group_by_cells, group_kernels, match_work
from tracekit.comparison.matching.pairing import Cell
from tracekit.model.analysis import FAMILIES
from tracekit.model.comparison import Coverage, GroupKind, GroupMember, KernelGroup, MatchedBy, Side
from tracekit.model.groups import GroupLabel, KernelCounts
from tracekit.model.sequence import Activity, Traffic
from tracekit.reading.sides import load_side
from tracekit.reading.traces import Reading
from tracekit.statements.notes.matching import LittleMatched, NoOperators, NoShapes, ProvenanceUnused, TooManyToMatch


def grouped(a: list[Activity], b: list[Activity], *cells: Cell, b_per_step: float = 1.0) -> tuple[KernelGroup, ...]:
    """By these cells; without them as they are aligned."""
    one = make_sequence(a)
    other = make_sequence(b, "own" if any(each.operator for each in b) else "none", per_step=b_per_step)
    return group_by_cells(one, other, cells or align(one, other))


def pieces(count: int) -> tuple[Cell, ...]:
    """The first with the first, the second with the second."""
    return tuple(Cell((at,), (at,), "provenance") for at in range(count))


OPERATORS = ("rms_norm", "mul", "add")


def block(call: int) -> list[Activity]:
    """A product and behind it three operators."""
    more = (eager(each, (64, 64), call=call + 1 + at) for at, each in enumerate(OPERATORS))
    return [product(64, 64, 64, call=call), *more]


def fused_block(call: int) -> list[Activity]:
    fused = triton("_fused_add_mul_rms_norm", (64, 64), call=call + 1)
    return [product(64, 64, 64, call=call, within="addmm"), fused]


def test_repeats_are_those_of_a_and_of_b_where_a_has_nothing() -> None:
    cells = (Cell((0,), (0, 2), "anchors"), Cell((1, 2, 3), (1,), "anchors"), Cell((), (3,), "anchors"))
    groups = grouped(block(0), [*fused_block(0), *fused_block(10)], *cells, b_per_step=0.5)
    assert {group.kind: group.repeats for group in groups} == {"defused": 1, "fused": 1, "added": 0.5}


def test_repeated_blocks_are_one_group_with_their_number() -> None:
    a = [each for at in range(0, 380, 10) for each in block(at)]
    b = [each for at in range(0, 380, 10) for each in fused_block(at)]
    (group,) = [group for group in grouped(a, b) if group.kind != "unchanged"]
    assert (group.kind, group.repeats, group.how) == ("fused", 38, "anchors")
    assert group.label == GroupLabel("fused", 38, KernelCounts(3, 0, ()), KernelCounts(1, 1, ()), OPERATORS)
    assert (group.delta_count, group.delta_us) == (38 - 3 * 38, pytest.approx(38 * (12 - 30)))


@pytest.mark.parametrize(("lengths", "repeats"), [(range(100, 103), [1, 1, 1]), (range(100, 120), [20])])
def test_work_of_a_few_shapes_stays_apart_and_a_loop_that_grows_is_one(lengths: range, repeats: list[int]) -> None:
    a = [eager("cat", (length, 64), call=length) for length in lengths]
    b = [triton("cat", (length, 64), call=length) for length in lengths]
    assert [group.repeats for group in grouped(a, b)] == repeats


def test_cells_that_leave_something_out_are_refused() -> None:
    with pytest.raises(AssertionError, match="not each of 4 once"):
        grouped(block(0), block(0), *pieces(1))


@fuzzed(60)
@given(SEQUENCES, SEQUENCES, st.booleans())
def test_any_two_sequences_make_groups_that_add_up_to_the_change(a, b, bare) -> None:
    """Align and group refuse cells that are no partition."""
    groups = grouped(a, without_operators(b)) if bare else grouped(a, b)
    change = math.fsum(each.duration_us for each in b) - math.fsum(each.duration_us for each in a)
    assert math.fsum(group.delta_us for group in groups) == pytest.approx(change, abs=1e-6)
    assert sum(group.delta_count for group in groups) == len(b) - len(a)


#: One addition of 8x64 elements, eager and fused, and what it moves.
ADDED, FUSED = eager("add", (8, 64), (8, 64), call=0), triton("_add", *[(8, 64)] * 3, call=0)
MOVED = 3 * 8 * 64 * 2


def test_traffic_is_the_sum_of_all_pieces_not_the_first_over_and_over() -> None:
    sizes = range(10, 20)
    a = [eager("add", (size, 64), (size, 64), call=size) for size in sizes]
    b = [triton("_add", *[(size, 64)] * 3, call=size) for size in sizes]
    (group,) = grouped(a, b, *pieces(10))
    moved = sum(3 * size * 64 * 2 for size in sizes)
    assert (group.repeats, group.traffic.eager_bytes, group.traffic.compiled_bytes) == (10, moved, moved)


def test_what_differs_in_size_or_type_on_b_alone_stays_apart() -> None:
    b = [triton("_add", (8 * (1 + at), 64), (8, 64), (8, 64), call=at) for at in range(3)]
    groups = grouped([ADDED] * 3, b, *pieces(3))
    assert sorted(group.traffic.compiled_bytes for group in groups) == [(8 * (1 + at) + 16) * 64 * 2 for at in range(3)]
    wide = make_activity(b[0].name, "triton", b[0].name, ((8, 64),) * 3, 1, dtype="float")
    assert len(grouped([ADDED] * 3, [b[0], wide, wide], *pieces(3))) == 2


def test_each_side_s_traffic_is_per_its_own_steps() -> None:
    cells = (Cell((0,), (0,), "provenance"), Cell((), (1,), "anchors"), Cell((1,), (), "anchors"))
    more = triton("_mul", *[(8, 64)] * 3, call=1)
    fused, added, gone = (each.traffic for each in grouped([ADDED, ADDED], [FUSED, more], *cells, b_per_step=0.5))
    assert (fused.eager_bytes, fused.compiled_bytes) == (MOVED, MOVED / 2)
    # A is empty here: B's figures are B's, and what is added moves more.
    assert (added.eager_bytes, added.compiled_bytes, added.removed_bytes) == (0, MOVED / 2, -MOVED / 2)
    assert (gone.eager_bytes, gone.compiled_bytes, gone.removed_bytes) == (MOVED, 0, MOVED)


def test_calls_of_which_nothing_is_known_are_counted_and_removed_nothing() -> None:
    unknown = replace(FUSED, operator=None)
    (group,) = grouped([ADDED, eager("cat", call=1)], [unknown], Cell((0, 1), (0,), "provenance"))
    assert group.traffic == Traffic(MOVED, None, 1, 1)
    assert group.traffic.removed_bytes is None
    assert grouped([unknown], [unknown], *pieces(1))[0].traffic is None


def test_rates_are_those_of_the_longest_call_and_of_its_mean_time() -> None:
    short = triton("_add", (1024, 64), (1024, 64), call=0, us=2.0)
    b = [short, replace(product(64, 64, 64, call=1), duration_us=30.0)]
    (group,) = grouped([ADDED], b, Cell((0,), (0, 1), "provenance"))
    assert group.rates.flops == 2 * 64**3
    assert group.rates.tflop_per_s == pytest.approx(2 * 64**3 / 30 / 1e6)


def test_a_call_whose_kernels_stand_in_several_groups_counts_in_that_of_its_main_one() -> None:
    main = product(64, 64, 64, call=3)
    parts = [replace(main, name="Memset (Device)", family="memset", duration_us=1.0), main]
    told = {group.label: (group.traffic, group.rates) for group in grouped(parts, parts, *pieces(2))}
    assert told["Memset (Device)"] == (Traffic(0, 0, 0, 0), None)
    traffic, rates = told[main.name]
    assert traffic.eager_bytes == traffic.compiled_bytes == 2 * (64 + 3 * 64 * 64)
    assert rates.tflop_per_s == pytest.approx(2 * 64**3 / 51 / 1e6)


RUN = Path(__file__).parents[3] / "traces" / "h100-vit"


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


def test_nothing_is_matched_without_activities_one_by_one_nor_a_step_with_a_whole_recording(sides) -> None:
    assert match_work(replace(sides[0], sequence=None), sides[1]) is None
    whole = load_side(RUN, form="eager", reading=Reading(window="whole", shapes=True, cached=False))
    assert match_work(whole, sides[1]) is None


def grouped_by_name(a: Kernels, b: Kernels, *, a_steps: int = 2, b_steps: int = 2) -> dict[str, KernelGroup]:
    """By the kernel's name, or the family."""
    one, other = make_analysis(a, steps=a_steps), make_analysis(b, steps=b_steps)
    groups = group_kernels(make_side("a", one), make_side("b", other))
    return {str(getattr(group.label, "family", group.label)): group for group in groups}


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


NAMES = st.sampled_from([f"kernel_{i}" for i in range(8)])
TIMES = st.tuples(st.sampled_from(FAMILIES), st.integers(1, 50), st.floats(0.01, 1e5))
RECORDED = st.dictionaries(NAMES, TIMES, min_size=1)


@fuzzed(30)
@given(RECORDED, RECORDED, st.integers(1, 4), st.integers(1, 4))
def test_every_activity_is_in_exactly_one_group_and_the_changes_add_up(a, b, a_steps, b_steps):
    groups = grouped_by_name(a, b, a_steps=a_steps, b_steps=b_steps).values()
    assert sorted(member.name for group in groups for member in group.a) == sorted(a)
    assert sorted(member.name for group in groups for member in group.b) == sorted(b)
    change = sum(us for _, _, us in b.values()) / b_steps - sum(us for _, _, us in a.values()) / a_steps
    assert math.fsum(group.delta_us for group in groups) == pytest.approx(change, abs=1e-6)
    change = sum(n for _, n, _ in b.values()) / b_steps - sum(n for _, n, _ in a.values()) / a_steps
    assert math.fsum(group.delta_count for group in groups) == pytest.approx(change, abs=1e-6)


def test_a_kernel_and_a_memory_set_of_one_name_are_told_apart_and_a_cpu_run_has_no_groups(tmp_path):
    events = [make_kernel(0, 5, name="fillBuffer"), {**make_copy(6, 9, kind="memset"), "name": "fillBuffer"}]
    side = make_side("x", analyze(make_trace(tmp_path, events)))
    assert sorted(group.a[0].total_us for group in group_kernels(side, side)) == [3, 5]
    assert group_kernels(side, make_side("b", make_cpu_analysis())) == ()


def test_each_side_s_figures_stand_beside_the_peak_of_its_own_device():
    sides = []
    for name, gpu, precision in (("gone", "NVIDIA A100-SXM4-80GB", "high"), ("new", "NVIDIA H200", "highest")):
        activity = make_activity(name, "gemm", "mm", ((64, 64), (64, 64)), 0, 50.0, dtype="float")
        side = make_side(name, make_analysis({name: ("gemm", 1, 50.0)}, steps=1, gpu_name=gpu), make_form())
        environment = make_environment(gpu=gpu, float32_matmul_precision=precision)
        sides.append(replace(side, environment=environment, sequence=make_sequence([activity])))
    groups = group_kernels(*sides, (Cell((0,), (), "anchors"), Cell((), (0,), "anchors")))
    rate = 2 * 64**3 / 50 / 1e6
    # The names do not tell the units; the setting of each run does: tf32 units there, vector units here.
    expected = [pytest.approx(rate / 156), pytest.approx(rate / 67)]
    assert sorted(group.rates.arithmetic_share for group in groups if group.rates) == expected


WORK = make_sequence([product(64, 64, 64, call=0), eager("add", (64, 64), call=1)])
NO_SHAPES = (replace(each, operator=replace(each.operator, dims=(), dtypes=())) for each in WORK.activities)


def test_a_side_is_doubted_whose_recording_has_no_operators_or_no_shapes() -> None:
    work = WORK, replace(WORK, operators="none"), replace(WORK, activities=tuple(NO_SHAPES))
    doubts = find_doubts(*(replace(make_side("graphed"), sequence=each) for each in work))
    assert doubts == (NoOperators("graphed"), NoShapes("graphed"))


@pytest.mark.parametrize(("kernels", "noted"), [(500_000, 0), (500_001, 1)])
def test_what_is_too_much_to_be_matched_is_said(kernels: int, noted: int) -> None:
    side = make_side("eager", make_analysis({"gemm": ("gemm", kernels, 50.0)}, steps=1))
    assert find_doubts(replace(side, sequence=None)) == (TooManyToMatch("eager", None, kernels),) * noted
    assert find_doubts(replace(side, sequence=WORK)) == ()


@pytest.mark.parametrize(
    ("coverage", "shares"),
    [
        (Coverage(0.302, 0.167), {"A": 0.302, "B": 0.167}),
        (Coverage(0.5, 1.0), {"A": 0.5}),
        # What is known to be gone counts as told.
        (Coverage(0.5, 1.0, a_time_alone=0.45), None),
        (Coverage(0.99, 0.95), None),
        (None, None),
    ],
)
def test_sides_that_hardly_match_may_be_of_different_models(coverage, shares) -> None:
    expected = [LittleMatched(shares)] if shares else []
    assert list(find_little_matched(coverage)) == expected


def make_group(
    a_us: float, b_us: float, kind: GroupKind = "fused", how: MatchedBy = "anchors", exact=True, traffic=None
) -> KernelGroup:
    a, b = ((GroupMember("kernel", 1, us),) if us else () for us in (a_us, b_us))
    return KernelGroup(kind, kind, how, a, b, 0, b_us - a_us, (), exact=exact, traffic=traffic)


def test_coverage_counts_what_has_both_sides_and_says_what_is_alone_or_told_by_elimination():
    groups = (
        make_group(40, 30, "unchanged"),
        make_group(20, 10, exact=False),
        make_group(30, 0, "eliminated"),
        make_group(0, 40, "added"),
        make_group(10, 0, "unmatched"),
        make_group(0, 20, "unmatched"),
    )
    found = measure_coverage(groups)
    assert (found.a_time_matched, found.b_time_matched) == pytest.approx((0.6, 0.4))
    assert (found.a_time_inexact, found.b_time_inexact) == pytest.approx((0.2, 0.1))
    assert (found.a_time_alone, found.b_time_alone) == pytest.approx((0.3, 0.4))
    # Of a side that did nothing all is matched.
    assert measure_coverage(groups[3:4]) == Coverage(1.0, 0.0, b_time_alone=1.0)


DOUBTFUL, SURE = make_group(50, 50, exact=False), make_group(50, 50)


def test_work_that_is_mostly_aligned_by_elimination_is_doubted() -> None:
    (warning,) = find_inexact([make_group(79, 79, exact=False), make_group(21, 21)])
    assert (warning.code, warning.facts["shares"]) == ("matched_by_elimination", {"A": 0.79, "B": 0.79})
    assert find_inexact([DOUBTFUL, SURE]) == find_inexact([make_group(9, 9, how="names", exact=False)]) == ()
    assert find_inexact([]) == ()
    # One note tells also why provenance cannot help.
    (both,) = find_inexact([DOUBTFUL], "two_runs")
    assert both.facts == {"shares": {"A": 1.0, "B": 1.0}, "no_provenance": "two_runs", "advise_profile": False}
    # What is no use to advise of a run, brings something for a bare trace.
    (of_runs,), (of_traces,) = find_inexact([DOUBTFUL], bare=False), find_inexact([DOUBTFUL])
    assert (of_runs.facts["advise_profile"], of_traces.facts["advise_profile"]) == (False, True)
    assert find_inexact([SURE], "two_runs") == (ProvenanceUnused("two_runs"),)


def test_only_groups_that_are_known_on_both_sides_count_and_their_share_of_the_time_is_told() -> None:
    groups = [
        make_group(30, 10, traffic=Traffic(1000, 400, 0, 0)),
        make_group(10, 0, traffic=Traffic(200, 0, 0, 0)),
        make_group(0, 5, traffic=Traffic(0, 50, 0, 0)),
        # A call of either side is not known.
        make_group(20, 5, traffic=Traffic(5000, 100, 1, 0)),
        make_group(10, 5, traffic=Traffic(5000, None, 0, 1)),
        make_group(10, 5),
    ]
    total = total_traffic(groups)
    assert (total.eager_bytes, total.compiled_bytes, total.removed_bytes) == (1200, 450, 750)
    assert (total.a_time_known, total.b_time_known) == pytest.approx((0.5, 0.5))
    assert total_traffic([]) is None
    # Known of less than half of a side's time, it says nothing of the call.
    assert total_traffic([*groups, make_group(1, 0)]) is None
    assert total_traffic([*groups, make_group(0, 1)]) is None


@pytest.mark.parametrize(("eager", "compiled"), [(0, 0), (0, 2400), (2400, 0)])
def test_a_side_that_would_move_nothing_has_no_traffic_to_compare(eager: float, compiled: float) -> None:
    assert total_traffic([make_group(1, 1, traffic=Traffic(eager, compiled, 0, 0))]) is None
