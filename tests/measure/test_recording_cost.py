"""What recording adds, on a machine whose clock and costs are made up."""

import gc
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from tracekit.measure import recording_cost
from tracekit.measure.recording_cost import EVENTS, NODES, REPEATS, REPLAYS, Loop, cost_of_recording
from tracekit.model.progress import Silent
from tracekit.model.recording_cost import Cost, EventCosts, RecordingCost

#: Host time of a call in us: not recorded, then what a light and a rich recording add.
TIMES = {
    "in_place": (11.0, 6.0, 10.0),
    "allocating": (5.0, 4.0, 7.0),
    "copy": (8.0, 8.0, 13.0),
    "several": (7.0, 6.0, 10.0),
    "cold": (25.0, 16.0, 20.0),
    "product": (9.0, 7.0, 12.0),
    "linear": (10.0, 9.0, 14.0),
    "cold_linear": (30.0, 20.0, 25.0),
    "launch_and_sync": (23.0, 11.0, 20.0),
    "driver": (15.0, 10.0, 30.0),
    "view": (2.5, 0.25, 3.0),
    "span": (14.0, 0.5, 2.5),
    "one": (5.75, 5.5, 6.0),
    "many": (7.0, 5.5 + 1.25 * (NODES - 1), 6.0 + 1.5 * (NODES - 1)),
}
#: What each kind of event then costs, in a light and in a rich recording.
ADDED = {
    "launch": (6, 10),
    "copy": (8, 13),
    "operator": (0.25, 3),
    "span": (0.5, 2.5),
    "sync": (5, 10),
    "driver_launch": (10, 30),
    "graph_launch": (4.25, 4.5),
    "graph_node": (1.25, 1.5),
    "library_launch": (9, 14),
}


class Machine:
    """Time passes in calls alone."""

    def __init__(self, noise: float = 0.0) -> None:
        self.now_ns, self.noise, self.random = 0, noise, random.Random(0)
        self.recorded: str | None = None
        self.sessions: list[str] = []
        self.calls: dict[str, int] = dict.fromkeys(TIMES, 0)
        #: How many times as long everything takes.
        self.slow = 1.0

    def loops(self, *left_out: str) -> dict[str, Loop]:
        events = {"one": REPLAYS, "many": REPLAYS, "cold": REPLAYS, "cold_linear": REPLAYS}
        before = {"cold": self._other_work, "cold_linear": self._other_work}
        return {
            name: Loop(self._call(name), events.get(name, EVENTS), before.get(name))
            for name in TIMES
            if name not in left_out
        }

    def _other_work(self) -> None:
        self.now_ns += 1_000_000

    def _call(self, name: str) -> Any:
        def call() -> None:
            assert not gc.isenabled()
            self.calls[name] += 1
            own, light, rich = TIMES[name]
            us = own + {None: 0.0, "light": light, "rich": rich}[self.recorded]
            self.now_ns += int(1e3 * us * self.slow * (1 + self.noise * self.random.random()))

        return call

    def host_us(self) -> float:
        return 20.0 * self.slow

    @contextmanager
    def profiler_of(self, _device: str, kind: str) -> Iterator[None]:
        self.sessions.append(kind)
        self.recorded = kind
        yield
        self.recorded = None


@pytest.fixture
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(getattr(request, "param", 0.0))
    monkeypatch.setattr(recording_cost, "perf_counter_ns", lambda: made.now_ns)
    monkeypatch.setattr(recording_cost, "profiler_of", made.profiler_of)
    monkeypatch.setattr(recording_cost, "host_us", made.host_us)
    return made


def all_of(costs: EventCosts) -> dict[str, Cost]:
    return {name: getattr(costs, name) for name in EventCosts.__struct_fields__}


def test_the_costs_of_each_kind_of_event_are_what_it_takes_more_under_each_recording(machine: Machine) -> None:
    found = cost_of_recording(machine.loops(), "cpu")
    for number, costs in enumerate((found.light, found.rich)):
        added = {name: both[number] for name, both in ADDED.items()}
        assert {name: cost.us for name, cost in all_of(costs).items()} == pytest.approx(added, abs=1e-9)
    # Kinds of launches differ, and nothing else does.
    assert (found.light.launch.low, found.light.launch.high) == pytest.approx((4, 16))
    assert (found.rich.sync.low, found.rich.sync.high) == pytest.approx((10, 10))
    assert machine.sessions == ["light", "light", "rich"], "the process's first session is not measured"
    assert machine.calls["copy"] == 3 * (1 + REPEATS * EVENTS)


@pytest.mark.parametrize("machine", [0.5, 5.0], indirect=True)
def test_costs_lie_within_their_range_and_never_below_nothing_however_noisy_the_machine(machine: Machine) -> None:
    found = cost_of_recording(machine.loops(), "cpu")
    for cost in (*all_of(found.light).values(), *all_of(found.rich).values()):
        assert 0 <= cost.low <= cost.us <= cost.high
    assert found.rich.launch.low < found.rich.launch.high
    assert msgspec.json.decode(msgspec.json.encode(found), type=RecordingCost) == found


def test_on_a_host_that_is_slow_in_one_recording_costs_are_those_of_a_host_of_one_speed(machine: Machine) -> None:
    at_one_speed = cost_of_recording(machine.loops(), "cpu")
    recorded = machine.profiler_of

    @contextmanager
    def slow(device: str, kind: str) -> Iterator[None]:
        machine.slow = 1.6 if kind == "light" else 1.0
        with recorded(device, kind):
            yield
        machine.slow = 1.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording_cost, "profiler_of", slow)
        found = cost_of_recording(machine.loops(), "cpu")
    assert found.host_us == at_one_speed.host_us == 20.0
    for name, cost in all_of(found.light).items():
        assert cost.us == pytest.approx(getattr(at_one_speed.light, name).us, abs=0.01), name


def test_where_no_graph_can_be_captured_graphs_have_no_costs(machine: Machine) -> None:
    found = cost_of_recording(machine.loops("one", "many", "driver", "product", "linear", "cold_linear"), "cpu")
    light, rich = found.light, found.rich
    assert (light.graph_launch, rich.graph_node, rich.driver_launch, light.library_launch) == (None, None, None, None)
    assert found.rich.launch.us == pytest.approx(10)


def test_a_loop_that_takes_long_is_repeated_less_often(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TIMES, "launch_and_sync", (500.0, 500.0, 1500.0))
    found = cost_of_recording(machine.loops(), "cpu")
    # 25 ms a repeat, then 50, then 100.
    assert machine.calls["launch_and_sync"] == 3 + (3 + 2 + 1) * EVENTS
    assert (found.light.sync.us, found.rich.sync.us) == (494, 1490)


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_is_collected_afterwards_as_before(machine: Machine, was_on: bool) -> None:
    before = gc.isenabled()
    (gc.enable if was_on else gc.disable)()
    try:
        cost_of_recording(machine.loops(), "cpu")
        assert gc.isenabled() is was_on
    finally:
        (gc.enable if before else gc.disable)()


def test_a_cpu_has_no_launches_to_measure() -> None:
    assert recording_cost.measure_recording_cost("cpu", Silent(), triton=True) is None


def test_a_cost_of_a_file_that_lies_outside_of_its_range_is_refused() -> None:
    costs = EventCosts(*[Cost(2.0, 1.0, 3.0)] * 5)
    text = msgspec.json.encode(RecordingCost(costs, costs))
    assert msgspec.json.decode(text, type=RecordingCost) == RecordingCost(costs, costs)
    for changed in (b'"us":4.0', b'"us":0.5', b'"us":-1.0', b'"us":1e300'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text.replace(b'"us":2.0', changed, 1), type=RecordingCost)
