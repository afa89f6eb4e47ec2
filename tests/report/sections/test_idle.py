from msgspec.structs import replace
from tests.report.showing import rows_of
from tests.sides import make_analysis, make_form, make_pair, make_side, scaled

from tracekit.model.analysis import DeviceQueue, Percentiles, Place, SyncTime
from tracekit.model.comparison import Side
from tracekit.model.idle_estimate import Between, IdleEstimate
from tracekit.report.sections.idle import (
    ALIGNED_NOTE,
    ALONE_NOTE,
    ASSUMED,
    MEASURED,
    UNEXPLAINED,
    cause_table,
    queue_table,
)
from tracekit.report.words.common import with_letters

#: Of 200 launches 190 found nothing in flight; 500 us starved, 100 delayed, 300 hand to mouth, 100 backed up.
DELAYS = Percentiles(200, 2.0, 2.5, 9.0, 40.0, 80.0)
QUEUE = DeviceQueue(0, 200, 190, 0, 0, DELAYS, None, 500.0, 100.0, 300.0, 100.0, 0.25, 3, ())


def side_with(*queues: DeviceQueue) -> Side:
    return make_side("trace.json", replace(make_analysis(), queue=queues or None))


def test_the_queue_of_both_sides_stands_side_by_side_per_step() -> None:
    graphed = replace(QUEUE, delays=None, graph_delays=Percentiles(2, 5.0, 5.0, 5.0, 5.0, 5.0))
    table = queue_table(with_letters(side_with(QUEUE), side_with(graphed)))
    rows = rows_of(table)
    assert rows["Launches, copies and memsets"] == ("100", "100")
    assert rows["Launches into an empty queue"] == ("95 %", "95 %")
    assert rows["Launch delay, kernels: p10 · p50 · p90 · p99"] == ("2.00 µs · 2.50 µs · 9.00 µs · 40.0 µs", "none")
    assert rows["Idle, queue empty"][0] == "250.0 µs (50 %)"
    assert rows["Maximum queue depth"] == ("3", "3")


def test_without_launches_or_with_several_gpus_there_is_no_table() -> None:
    assert queue_table(with_letters(side_with(), side_with(QUEUE))) is None
    assert queue_table(with_letters(side_with(QUEUE, QUEUE), side_with(QUEUE))) is None


#: Of 1,137 and 291 us of idle time in a call.
A = IdleEstimate({"python": Between(900, 800, 1000), "gc": Between(30, 30, 30)})
B = IdleEstimate({"python": Between(350, 250, 500)})
NEW = Between(0, 0, 20)


def estimated(a: IdleEstimate = A, b: IdleEstimate = B) -> tuple[Side, Side]:
    sides = make_pair(scaled(2.0), scaled(1.0))
    return replace(sides[0], idle_estimate=a), replace(sides[1], idle_estimate=b)


def table_of(*sides: Side) -> dict[str, tuple[str, ...]]:
    found = cause_table(with_letters(*sides))
    assert found is not None
    return {
        name: tuple(cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row) for name, row in rows_of(found).items()
    }


def note_of(*sides: Side) -> str:
    found = cause_table(with_letters(*sides))
    assert found is not None
    return found.note


def test_each_cause_has_its_range_beside_it_and_what_causes_leave_may_be_less_than_nothing() -> None:
    rows = table_of(*estimated())
    assert rows["Python"][:3] == ("0.9 ms (0.8 to 1.0)", "350 µs (250 to 500)", "−550 µs (−750 to −300)")
    # Of what was recorded alone nothing is left; what was not recorded at all is there.
    assert rows["operator dispatch"][:4] == ("0", "0", "0", "300.0 µs")
    assert rows["garbage collection"][:4] == ("30.0 µs", "0", "−30.0 µs", "0")
    assert rows[UNEXPLAINED][:3] == ("207.5 µs", "−58.8 µs", "−266.2 µs")
    assert rows["all idle time"][:3] == ("1.14 ms", "291.2 µs", "−846.2 µs")


def test_a_trace_alone_has_what_each_cause_may_be_beside_it_as_recorded() -> None:
    estimate = IdleEstimate({"op_dispatch": Between(300, 80, 300), "launch_call": Between(100, 1, 100)})
    side = make_side("a.json", recorded_idle_estimate=replace(estimate, causes={**estimate.causes, "device": NEW}))
    rows = table_of(side)
    assert rows["operator dispatch"][0] == "300.0 µs (80.0 to 300.0)"
    assert rows["gaps between queued kernels"][0] == "0.00 µs (0.00 to 20.00)"
    assert rows["all idle time"][0] == "400.0 µs"
    assert note_of(side).endswith(ALONE_NOTE)
    # Of another side nothing is known.
    rows, bare = table_of(side, make_side("b.json")), make_side("b.json")
    assert rows["operator dispatch"][:3] == ("300.0 µs (80.0 to 300.0)", "300.0 µs", "0.0 µs (0.0 to +220.0)")
    assert ALONE_NOTE in note_of(side, bare) and ALONE_NOTE not in note_of(side, bare, bare)
    assert ALONE_NOTE not in note_of(bare)


def test_of_more_than_two_sides_there_is_no_room_for_ranges() -> None:
    a, b = estimated()
    assert table_of(a, b, b)["Python"][:3] == ("0.9 ms", "350 µs", "350 µs")


def test_the_note_says_whether_what_recording_adds_was_measured() -> None:
    assert ASSUMED in note_of(*estimated()) and ALIGNED_NOTE not in note_of(*estimated())
    measured = estimated(replace(A, cost_measured=True), replace(B, cost_measured=True))
    assert MEASURED in note_of(*(replace(side, rich=make_analysis()) for side in measured))
    assert ALIGNED_NOTE in note_of(*(replace(side, rich=make_analysis()) for side in measured))
    assert ASSUMED in note_of(*estimated(replace(A, cost_measured=True)))
    # One side alone was estimated so.
    half = note_of(estimated()[0], make_side("b", form=make_form()))
    assert ASSUMED not in half and "scaled alike" in half


def test_what_follows_a_call_that_waited_is_told_with_its_place_from_a_tenth_of_idle_time_on() -> None:
    syncs = (
        SyncTime("cudaMemcpyAsync", 2, 50.0, None),
        SyncTime("cudaStreamSynchronize", 2, 90.0, Place("aten::item", None, None), lines={"model.py:12": 1}),
    )
    analysis = make_analysis()
    analysis = replace(analysis, idle=replace(analysis.idle, syncs=syncs))
    for us, is_told in ((110.0, False), (120.0, True)):
        side = replace(estimated(replace(A, after_sync_us={"python": us}))[0], analysis=analysis)
        told = "Python 120.0 µs follow a synchronising call (cudaStreamSynchronize, aten::item, at model.py:12)"
        assert (told in note_of(side)) is is_told
        assert ("synchronising" in note_of(side)) is is_told


def test_idle_time_whose_launches_differ_between_the_traces_is_counted() -> None:
    for us, is_told in ((10.0, False), (20.0, True)):
        a, b = estimated(replace(A, unaligned_us=us))
        assert ("Of A's idle time 20.0 µs have the causes of the whole call" in note_of(a, b)) is is_told
        assert "Of B's" not in note_of(a, b)
