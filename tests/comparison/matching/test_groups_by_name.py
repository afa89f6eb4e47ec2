from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sequences import eager, make_activity, make_sequence, product
from tests.sides import (
    COMPILED,
    EAGER,
    Kernels,
    make_analysis,
    make_cpu_analysis,
    make_environment,
    make_form,
    make_side,
)

from tracekit.comparison.matching import Cell
from tracekit.comparison.matching.coverage import (
    find_doubts,
    find_inexact,
    find_little_matched,
    measure_coverage,
    total_traffic,
)
from tracekit.comparison.matching.groups import group_kernels
from tracekit.model.analysis import FAMILIES
from tracekit.model.comparison import Coverage, GroupKind, GroupMember, KernelGroup, Side
from tracekit.model.groups import GroupLabel
from tracekit.model.note import Note
from tracekit.model.sequence import Sequence, Traffic


def grouped(a: Kernels, b: Kernels, *, a_steps: int = 2, b_steps: int = 2) -> dict[str, KernelGroup]:
    one, other = make_analysis(a, steps=a_steps), make_analysis(b, steps=b_steps)
    groups = group_kernels(make_side("a", one), make_side("b", other))
    return {_name(group): group for group in groups}


def _name(group: KernelGroup) -> str:
    """The kernel's name, or the family."""
    return str(group.label.family) if isinstance(group.label, GroupLabel) else group.label


def test_kernels_of_one_name_and_number_are_unchanged():
    group = grouped(EAGER, COMPILED)["gemm_128x64"]
    assert (group.kind, group.how, group.delta_count, group.delta_us) == ("unchanged", "names", 0, 5)


def test_figures_are_per_step_so_recordings_of_different_length_compare():
    doubled = {name: (family, 2 * count, 2 * us) for name, (family, count, us) in EAGER.items()}
    groups = grouped(EAGER, doubled, a_steps=2, b_steps=4)
    assert {group.kind for group in groups.values()} == {"unchanged"}
    assert all(math.isclose(group.delta_us, 0, abs_tol=1e-9) for group in groups.values())


def test_fewer_element_wise_kernels_are_fused():
    group = grouped(EAGER, COMPILED)["element_wise"]
    assert group.kind == "fused"
    assert (group.delta_count, group.delta_us) == (10 - 25, 100 - 260)


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
    assert {label: group.kind for label, group in grouped(a, b).items()} == expected
    assert {group.exact for group in grouped(a, b).values()} == {False}


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
    groups = grouped(a, b, a_steps=a_steps, b_steps=b_steps).values()
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
