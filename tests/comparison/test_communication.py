"""What two ranks, or two jobs, may say of each other by one recording each: nothing of who waited."""

import math
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.sides import make_form
from tests.traces import DATA, make_call, make_kernel, make_op, make_span, write_trace

from tracekit.comparison.comparing import compare
from tracekit.comparison.looking import look_at
from tracekit.comparison.matching.groups import group_kernels, match_work
from tracekit.comparison.waterfall import build_waterfall, find_reason
from tracekit.model.comparison import Comparison, Side, Verdict
from tracekit.reading.sides import load_side
from tracekit.reading.traces import Reading
from tracekit.statements.findings.kernels import MoreGpuTime

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
JOB = {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}}
READING = Reading(shapes=True, cached=False)


def rank(folder: Path, label: str, *waits_us: float, beside_us: float = 0.0, job: dict | None = None) -> Side:
    """A step of a product each and an all-reduce that takes so long, of which `beside_us` lie beside the product."""
    events = []
    for step, wait_us in enumerate(waits_us):
        start = 1000.0 * step
        inputs = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["c10::BFloat16"] * 2}
        events += [
            make_span(start, start + 900, name=f"tracekit.step#{step}"),
            make_op(start + 1, start + 9, name="aten::mm", **inputs),
            make_call(start + 2, start + 4, correlation=10 * step + 1),
            make_kernel(start + 20, start + 120, name="nvjet_64x64", correlation=10 * step + 1),
            make_op(start + 11, start + 19, name="c10d::allreduce_"),
            make_call(start + 12, start + 14, correlation=10 * step + 2),
            make_kernel(
                start + 120 - beside_us,
                start + 120 - beside_us + wait_us,
                name=NCCL,
                stream=20,
                correlation=10 * step + 2,
            ),
        ]
    (folder / label).mkdir()
    return load_side(write_trace(folder / label, events, **(JOB if job is None else job)), reading=READING)


def closes(comparison: Comparison) -> bool:
    waterfall = comparison.waterfall
    total = waterfall.a_us + math.fsum(part.delta_us for part in waterfall.parts) + waterfall.residual_us
    return total == pytest.approx(waterfall.b_us, abs=1e-9)


def parts(comparison: Comparison) -> dict[tuple[str, str], float]:
    return {
        (part.kind, part.label if isinstance(part.label, str) else part.label.kind): part.delta_us
        for part in comparison.waterfall.parts
        if part.kind != "idle"
    }


def test_waiting_is_a_part_of_its_own_and_no_kernel_became_slower(tmp_path: Path) -> None:
    comparison = compare(rank(tmp_path, "a", 50, 50), rank(tmp_path, "b", 650, 450))
    assert parts(comparison) == {
        ("gpu", "unchanged_kernels"): 0,
        ("gpu", "overlap_correction"): 0,
        ("communication", "exposed_communication"): 500,
    }
    assert closes(comparison) and comparison.deltas.busy_us == 500
    assert {group.kind for group in comparison.groups} == {"unchanged", "communication"}
    (apart,) = (group for group in comparison.groups if group.kind == "communication")
    assert (apart.how, apart.exact, apart.delta_us, apart.delta_count) == ("family", True, 500, 0)
    assert apart.label.family == "communication"
    # Five times as much GPU time is busy, and no finding says that B became slower.
    assert [finding.code for finding in comparison.findings] == []


def test_communication_beside_compute_takes_no_time_of_the_call(tmp_path: Path) -> None:
    comparison = compare(rank(tmp_path, "a", 20), rank(tmp_path, "b", 90, beside_us=80))
    told = parts(comparison)
    assert told["communication", "exposed_communication"] == pytest.approx(10 - 20)
    assert told["gpu", "overlap_correction"] == pytest.approx(0)
    assert closes(comparison)
    (apart,) = (group for group in comparison.groups if group.kind == "communication")
    assert apart.delta_us == pytest.approx(90 - 20)


def test_the_groups_are_a_partition_whether_told_by_work_or_by_names(tmp_path: Path) -> None:
    a, b = rank(tmp_path, "a", 50, 70), rank(tmp_path, "b", 650)
    work = match_work(a, b)
    assert work is not None
    assert [each.group.kind for each in work.work].count("communication") == 1
    by_work, by_names = compare(a, b).groups, group_kernels(a, b)
    for groups in (by_work, by_names):
        assert [group.kind for group in groups].count("communication") == 1
        assert math.fsum(m.total_us for group in groups for m in group.a) == pytest.approx(160)
        assert math.fsum(m.total_us for group in groups for m in group.b) == pytest.approx(750)


def test_one_side_alone_may_communicate(tmp_path: Path) -> None:
    with_ranks = rank(tmp_path, "b", 200)
    one = load_side(
        write_trace(
            tmp_path,
            [
                make_span(0, 900),
                make_call(2, 4, correlation=1),
                make_kernel(20, 120, name="nvjet_64x64", correlation=1),
            ],
        ),
        reading=READING,
    )
    for comparison in (compare(one, with_ranks), compare(with_ranks, one)):
        assert closes(comparison)
        assert abs(parts(comparison)["communication", "exposed_communication"]) == 200
        assert "more_gpu_time" not in {finding.code for finding in comparison.findings}


def test_the_note_stands_beside_the_headline_unless_there_is_one_rank(tmp_path: Path) -> None:
    a, b = rank(tmp_path, "a", 50), rank(tmp_path, "b", 650)
    (note,) = (each for each in compare(a, b).notes if each.code == "communication_not_judged")
    assert note.grave and note.facts == {"a_exposed_us": 50, "b_exposed_us": 650}
    (own,) = (each for each in look_at(b).notes if each.code == "waiting_untold")
    assert own.grave and (own.facts["rank"], own.facts["world_size"]) == (0, 2)
    assert own.facts["compute_us"] + own.facts["exposed_us"] == b.busy_us == 750
    one_rank = {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1}}
    one, other = (rank(tmp_path, name, us, job=one_rank) for name, us in (("c", 50), ("d", 650)))
    codes = {each.code for each in (*compare(one, other).notes, *look_at(other).notes)}
    assert codes.isdisjoint({"waiting_untold", "communication_not_judged"})
    # A trace that says nothing of its job may be one of many.
    assert "waiting_untold" in {each.code for each in look_at(rank(tmp_path, "e", 50, job={})).notes}


def test_compute_that_became_slower_is_found_beside_communication(tmp_path: Path) -> None:
    a = load_side(rank(tmp_path, "a", 50).path, reading=READING)
    slow = [make_span(0, 900), make_call(2, 4, correlation=1), make_kernel(20, 320, name="nvjet_64x64", correlation=1)]
    slow += [make_call(12, 14, correlation=2), make_kernel(320, 370, name=NCCL, stream=20, correlation=2)]
    (found,) = (
        each
        for each in compare(a, load_side(write_trace(tmp_path, slow, **JOB), reading=READING)).findings
        if each.code == "more_gpu_time"
    )
    assert found.statement == MoreGpuTime(found.statement.side, 1, 1, 100, 300, without_communication=True)


def test_the_reason_of_a_timed_change_names_waiting_as_no_kernel(tmp_path: Path) -> None:
    a, b = rank(tmp_path, "a", 50), rank(tmp_path, "b", 650)
    a, b = (
        replace(each, form=make_form(name, (us,) * 10)) for each, name, us in ((a, "eager", 300), (b, "compiled", 900))
    )
    reason = find_reason(a, b, Verdict("slower", 1 / 3), build_waterfall(a, b, group_kernels(a, b)))
    assert [(share.kind, share.delta_us) for share in reason.shares] == [("communication", 600)]


def test_two_real_ranks_close_and_blame_no_kernel() -> None:
    a, b = (
        load_side(DATA / "ranks" / f"tp_reduce-overhead.rank{number}.json.gz", reading=READING) for number in (0, 1)
    )
    comparison = compare(a, b)
    assert closes(comparison)
    assert parts(comparison)["communication", "exposed_communication"] == pytest.approx(b.exposed_us - a.exposed_us)
    assert [group.kind for group in comparison.groups].count("communication") == 1
    assert {finding.code for finding in comparison.findings} <= {"synchronising_calls"}
