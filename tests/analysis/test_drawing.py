import json
from pathlib import Path
from typing import Any

import pytest
from tests.traces import Json, analyze, make_call, make_kernel, make_op, make_span, make_trace

from tracekit.analysis.drawing import draw_arrows, draw_panel, known_of
from tracekit.analysis.sequence import list_work
from tracekit.model.comparison import GroupMember, KernelGroup
from tracekit.model.matching import MatchedWork, Matching
from tracekit.model.picture import Panel
from tracekit.model.trace import Trace


def two_steps() -> list[Json]:
    """Two steps from 1000 us on, each of two kernels with a gap between them; a launch before the first step."""
    events = [make_call(900, 905, correlation=99), make_kernel(950, 1010, name="early", correlation=99)]
    for step in range(2):
        start = 1000.0 + 500 * step
        events += [make_span(start, start + 200, name=f"tracekit.step#{step}")]
        for number, name in enumerate(("gemm", "add")):
            correlation, launched = 10 * step + number + 1, start + 20 + 50 * number
            events += [
                make_op(launched - 5, launched + 8, name=f"aten::{name}"),
                make_call(launched, launched + 5, correlation=correlation),
                make_kernel(launched + 20, launched + 40, name=name, correlation=correlation),
            ]
    return events


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return make_trace(tmp_path, two_steps())


def rows(panel: Panel, track: str) -> list[Json]:
    (found,) = [each for each in panel.tracks if each.name == track]
    return [{**row, "details": json.loads(row["details"] or "{}")} for row in found.slices.iter_rows(named=True)]


def make_group(kind: str, label: str) -> KernelGroup:
    return KernelGroup(kind, label, "anchors", (GroupMember("gemm", 1, 20.0),), (), -1, -20.0, ())  # type: ignore[arg-type]


def matched(trace: Trace) -> Matching:
    """The first kernel is unchanged, the second has gone."""
    sequence = list_work(trace)
    work = (
        MatchedWork(make_group("unchanged", "gemm"), (0,), (0,), ("model.fc",)),
        MatchedWork(make_group("fused", "2 kernels -> 1"), (1,), (1,), ()),
    )
    return Matching(sequence, sequence, work)


def test_time_begins_with_the_first_step_and_what_reaches_over_is_cut(trace: Trace) -> None:
    kernels = rows(draw_panel(trace, "eager"), "GPU 0 stream 7")
    assert [(each["name"], each["start_ns"], each["end_ns"]) for each in kernels] == [
        ("early", 0, 10_000),
        ("gemm", 40_000, 60_000),
        ("add", 90_000, 110_000),
        ("gemm", 540_000, 560_000),
        ("add", 590_000, 610_000),
    ]


def test_steps_say_what_they_cost(trace: Trace) -> None:
    steps = rows(draw_panel(trace, "eager", wall_us=150.0), "steps")
    assert [(each["name"], each["start_ns"], each["end_ns"]) for each in steps] == [
        ("step 0", 0, 200_000),
        ("step 1", 500_000, 700_000),
    ]
    assert steps[1]["details"]["busy us"] == 40.0
    assert steps[1]["details"]["unprofiled call us"] == 150.0


def test_gaps_add_up_to_the_idle_time_and_are_named_after_their_main_cause(trace: Trace) -> None:
    gaps = rows(draw_panel(trace, "eager"), "idle, GPU 0")
    analysis = analyze(trace)
    assert sum(each["end_ns"] - each["start_ns"] for each in gaps) / 1e3 == pytest.approx(analysis.gpu.idle_us)
    for each in gaps:
        causes = each["details"]["causes us"]
        assert sum(causes.values()) == pytest.approx((each["end_ns"] - each["start_ns"]) / 1e3)
        assert causes[each["name"]] == max(causes.values())
    assert (gaps[0]["start_ns"], gaps[0]["end_ns"]) == (10_000, 40_000)
    assert len(gaps) == analysis.idle.gap_count


def test_kernels_tell_their_operator_and_their_group_in_every_step(trace: Trace) -> None:
    panel = draw_panel(trace, "eager", known=known_of(matched(trace), "a"))
    kernels = [each for each in rows(panel, "GPU 0 stream 7") if each["name"] == "gemm"]
    assert [each["key"] for each in kernels] == [0, 2]
    for each in kernels:
        assert each["details"]["operator"] == "aten::gemm"
        assert (each["details"]["group"], each["details"]["where"]) == ("gemm", ["model.fc"])
        assert each["details"]["launched by"] == "cudaLaunchKernel"
    groups = rows(panel, "kernel groups, GPU 0")
    assert [each["name"] for each in groups] == ["unchanged: gemm", "fused: 2 kernels -> 1"] * 2
    assert groups[1]["details"]["change in us per step"] == -20.0


def test_kernels_of_a_piece_that_follow_one_another_are_one_slice(trace: Trace) -> None:
    sequence = list_work(trace)
    both = Matching(sequence, sequence, (MatchedWork(make_group("fused", "2 -> 2"), (0, 1), (0, 1), ()),))
    groups = rows(draw_panel(trace, "eager", known=known_of(both, "a")), "kernel groups, GPU 0")
    assert [(each["start_ns"], each["end_ns"], each["details"]["kernels here"]) for each in groups] == [
        (40_000, 110_000, 2),
        (540_000, 610_000, 2),
    ]


def test_a_recording_that_did_other_work_is_not_tied_to_the_groups(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    renamed = [{**each, "name": "other"} if each["name"] == "add" else each for each in two_steps()]
    panel = draw_panel(make_trace(tmp_path / "other", renamed), "eager", known=known_of(matched(trace), "a"))
    assert {each["key"] for each in rows(panel, "GPU 0 stream 7")} == {None}
    assert not [track for track in panel.tracks if track.name.startswith("kernel groups")]


def arrows(trace: Trace, matching: Matching, **options: Any) -> list[tuple[str, int, int]]:
    one, other = (draw_panel(trace, side, known=known_of(matching, side), **options) for side in ("a", "b"))
    return draw_arrows(matching, one, other).select("name", "a_key", "b_key").rows()


def test_arrows_tie_each_step_of_one_side_to_the_same_step_of_the_other(trace: Trace) -> None:
    pairs = [("unchanged", 0, 0), ("fused", 1, 1), ("unchanged", 2, 2), ("fused", 3, 3)]
    assert arrows(trace, matched(trace)) == pairs


def test_arrows_of_pieces_with_unequal_counts_lead_to_the_first_kernel(trace: Trace) -> None:
    fused = MatchedWork(make_group("fused", "2 -> 1"), (0, 1), (1,), ())
    added = MatchedWork(make_group("added", ""), (), (0,), ())
    matching = Matching(list_work(trace), list_work(trace), (fused, added))
    assert arrows(trace, matching, steps=(0, 0)) == [("fused", 0, 1), ("fused", 1, 1)]


def test_curves_hold_the_busy_share_and_the_queue(trace: Trace) -> None:
    panel = draw_panel(trace, "eager")
    busy, queue = panel.counters
    assert (busy.name, busy.unit, queue.name) == ("GPU 0 busy", "%", "GPU 0 queue")
    # 90 of 700 us: 10 of the early kernel, 20 of each of four.
    assert busy.points["value"].mean() == pytest.approx(100 * 90 / 700, abs=0.3)
    waits = dict(queue.points.iter_rows())
    # Handed over when the launch returned, begun 15 us later.
    assert (waits[25_000], waits[40_000]) == (1, 0)


def test_without_a_gpu_the_host_and_the_steps_are_shown(tmp_path: Path) -> None:
    events = [make_span(10, 60), make_op(20, 30, name="aten::mm"), make_op(100, 110, name="later")]
    panel = draw_panel(make_trace(tmp_path, events), "eager")
    assert [track.name for track in panel.tracks] == ["steps", "thread 1"]
    assert [each["name"] for each in rows(panel, "thread 1")] == ["tracekit.step#0", "aten::mm"]
    assert panel.counters == ()


def test_a_whole_recording_begins_with_its_first_event(trace: Trace) -> None:
    panel = draw_panel(trace, "eager", window="whole")
    assert rows(panel, "GPU 0 stream 7")[0]["start_ns"] == 50_000
    assert not [track for track in panel.tracks if track.name == "steps"]
