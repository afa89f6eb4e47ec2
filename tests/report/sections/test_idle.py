from msgspec.structs import replace
from tests.report.showing import rows_of
from tests.sides import make_analysis, make_side

from tracekit.model.analysis import DeviceQueue, Percentiles
from tracekit.model.comparison import Side
from tracekit.report.sections.idle import queue_table
from tracekit.report.sides import with_letters

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
