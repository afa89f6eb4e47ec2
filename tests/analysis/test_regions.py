from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.traces import Json, analyze, launched, make_kernel, make_op, make_span, make_trace, recording

from tracekit.analysis.regions import with_break_costs
from tracekit.model.compilation import CompiledRegions, Diagnostics, GraphBreak
from tracekit.tracefile.read import read_trace

LOOKUP, PREGRAPH = "TorchDynamo Cache Lookup", "Pregraph bytecode"
PROLOGUE = "AOTDispatcher Runtime Wrapper Prologue"


def regions_of(folder: Path, events: list[Json], **options: str) -> CompiledRegions:
    found = analyze(make_trace(folder, events), **options).regions
    assert found is not None
    return found


def graph(start_us: float, end_us: float, key: str = "fabc", *, thread: int = 1) -> Json:
    return make_span(start_us, end_us, name=f"## Call CompiledFxGraph {key} ##", thread=thread)


def broken_step() -> list[Json]:
    """A frame that breaks at 40 and goes on in another one from 60; between them an eager kernel is launched."""
    return [
        make_span(0, 120),
        make_op(1, 5, name=LOOKUP),
        make_op(5, 100, name="Torch-Compiled Region: 0/0"),
        make_op(6, 8, name=PREGRAPH),
        make_op(8, 9, name=PROLOGUE),
        graph(10, 40),
        *launched(20, 30, 1),
        *launched(50, 10, 2),
        make_op(60, 63, name=LOOKUP),
        make_op(63, 95, name="Torch-Compiled Region: 1/0"),
        graph(65, 90, "fdef"),
        *launched(70, 20, 3),
    ]


def test_gpu_time_is_compiled_where_its_launch_was_in_a_graph_not_just_in_a_region(tmp_path: Path) -> None:
    found = regions_of(tmp_path, broken_step())
    assert (found.lookups, found.guards_us, found.entry_us, found.count, found.graphs) == (2, 7, 3, 2, 2)
    assert (found.gpu_us, found.all_gpu_us) == (50, 60)
    assert found.gpu_share == pytest.approx(5 / 6)
    assert (found.activities, found.all_activities) == (2, 3)
    assert found.unlinked_us == 0


def test_communication_is_no_gpu_time_that_code_could_be_compiled_for(tmp_path: Path) -> None:
    waiting = launched(100, 900, 9, name="ncclDevKernel_AllGather_RING_LL")
    found = regions_of(tmp_path, [*broken_step(), *waiting])
    assert (found.gpu_us, found.all_gpu_us, found.all_activities) == (50, 60, 3)


def test_what_is_between_graphs_is_told_without_graphs_lookups_and_entry(tmp_path: Path) -> None:
    found = regions_of(tmp_path, broken_step())
    outer, inner = found.regions
    assert (outer.id, outer.count, outer.host_us) == ("0/0", 1, 95)
    # 95 less the graph's 30, pregraph and prologue 3, the resumed lookup 3 and region 32.
    assert outer.outside_us == pytest.approx(95 - 30 - 3 - 3 - 32)
    assert (inner.id, inner.outside_us) == ("1/0", 32 - 25)


def test_what_queued_work_hides_between_graphs_is_no_idle_time(tmp_path: Path) -> None:
    found = regions_of(tmp_path, broken_step())
    # The GPU works from 22 to 62 and from 72 to 92: the 20 us of the break itself cost nothing.
    assert [region.idle_us for region in found.regions] == [1 + 1 + 5, 2 + 3]
    # Before the first graph's kernel and the last one's; the eager kernel follows the first one at once.
    assert found.idle_us == 22 + 10
    elsewhere = make_op(60, 70, name="Torch-Compiled Region: 2/0", thread=2)
    found = regions_of(tmp_path, [*broken_step(), elsewhere, *launched(100, 5, 4)])
    assert {region.id: region.idle_us for region in found.regions} == {"0/0": 7, "1/0": 5, "2/0": 70 - 62}
    # Nor is the gap before an eager kernel.
    assert found.idle_us == 22 + 10
    hidden = [each for each in broken_step() if each.get("args", {}).get("correlation") != 1]
    outer, inner = regions_of(tmp_path, [*hidden, *launched(20, 5, 1)]).regions
    assert (outer.idle_us, inner.idle_us) == (1 + 1 + (52 - 40) + 5, 2 + 3)


def test_a_break_costs_a_step_what_its_frames_leave_idle(tmp_path: Path) -> None:
    found = regions_of(tmp_path, broken_step())
    one = GraphBreak("model.py:20", "forward", "Unsupported", None, None, None, ("0/0",))
    other = replace(one, where="model.py:30", frames=("9/9",))
    first, unseen = with_break_costs(Diagnostics(breaks=(one, other)), found, 2).breaks
    assert (first.per_step_us, first.idle_per_step_us, first.cost_us) == (27 / 2, 7 / 2, 7 / 2)
    assert (unseen.per_step_us, unseen.idle_per_step_us, unseen.cost_us) == (None, None, None)
    on_cpu = replace(found, regions=tuple(replace(region, idle_us=None) for region in found.regions))
    assert with_break_costs(Diagnostics(breaks=(one,)), on_cpu, 1).breaks[0].cost_us == 27


def test_only_what_began_in_the_window_counts(tmp_path: Path) -> None:
    later = [make_op(200, 230, name=LOOKUP), make_op(230, 260, name="Torch-Compiled Region: 9/9"), graph(240, 250)]
    found = regions_of(tmp_path, [*broken_step(), *later])
    assert [region.id for region in found.regions] == ["0/0", "1/0"]
    whole = regions_of(tmp_path, [*broken_step(), *later], window="whole")
    assert [region.id for region in whole.regions] == ["0/0", "1/0", "9/9"]


REGION = make_op(0, 40, name="Torch-Compiled Region: 0/0")


@pytest.mark.parametrize(
    ("events", "count", "graphs", "share"),
    [
        # A launch on another thread is not in the graph of this one.
        ([REGION, graph(10, 38), *launched(20, 10, 1), *launched(30, 10, 2, thread=2)], 1, 1, 0.5),
        # Autograd's thread runs graphs without a region.
        ([make_op(0, 1), graph(10, 80, thread=2), *launched(20, 9, 1, thread=2)], 0, 1, 1.0),
        # Without graphs of Inductor's a region is compiled code.
        ([REGION, *launched(20, 10, 1), *launched(50, 10, 2)], 1, 0, 0.5),
        # An eager recording shows that nothing was compiled.
        ([make_op(10, 40), *launched(20, 10, 1)], 0, 0, 0.0),
    ],
)
def test_the_share_of_gpu_time_that_compiled_code_launched(
    tmp_path: Path, events: list[Json], count: int, graphs: int, share: float
) -> None:
    found = regions_of(tmp_path, [make_span(0, 100), *events])
    assert (found.count, found.graphs, found.gpu_share) == (count, graphs, share)


def test_a_kernel_whose_launch_is_not_recorded_is_told_apart(tmp_path: Path) -> None:
    events = [make_span(0, 100), REGION, graph(1, 39)]
    found = regions_of(tmp_path, [*events, *launched(20, 10, 1), make_kernel(60, 90)], window="whole")
    assert (found.gpu_us, found.all_gpu_us, found.unlinked_us) == (10, 40, 30)


def test_a_recording_without_operators_shows_no_regions(tmp_path: Path) -> None:
    assert analyze(make_trace(tmp_path, [make_span(0, 100), *launched(20, 10, 1)])).regions is None


@pytest.mark.parametrize(
    ("name", "regions", "share"),
    [("vit_default", 1, 1.0), ("vit_eager", 0, 0.0), ("vit_reduce-overhead", 1, 1.0), ("flux_default", 2, 0.778)],
)
def test_real_recordings_of_one_compiled_model(name: str, regions: int, share: float) -> None:
    analysis = analyze(read_trace(recording(name)), window=r"tracekit\.iteration#\d+")
    assert analysis.regions.count / analysis.window.steps == regions
    assert analysis.regions.gpu_share == pytest.approx(share, abs=0.01)
    assert (analysis.regions.guards_us > 0) is (regions > 0)


def test_a_collection_costs_no_graph_break_anything(tmp_path: Path) -> None:
    """Without the break it is made all the same."""
    found = regions_of(tmp_path, [*broken_step(), make_span(93, 95, name="Python GC")])
    assert [(region.id, region.outside_us, region.idle_us) for region in found.regions] == [
        ("0/0", 27, 7),
        ("1/0", 5, 3),
    ]
