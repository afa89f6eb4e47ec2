"""Idle time by cause of calls whose true causes are known: a host and one GPU queue, simulated without a profiler, with
one that records API calls, and with one that records operators too."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.fuzzing import fuzzed
from tests.sides import make_form, make_run
from tests.traces import Json, make_call, make_kernel, make_op, make_span, write_trace

from tracekit import store
from tracekit.analysis.replay import HostCost
from tracekit.analysis.unprofiled_idle import Rule, estimate_idle
from tracekit.model.comparison import Side
from tracekit.model.idle_estimate import NOTHING, Between
from tracekit.model.quartiles import Quartiles
from tracekit.model.recording_cost import Cost, EventCosts, RecordingCost
from tracekit.model.run import Recording
from tracekit.reading.sides import load_side
from tracekit.reading.traces import Reading

GC, LOOKUP, VIEW, TRITON = "Python GC", "TorchDynamo Cache Lookup", "aten::view", "triton_poi_fused_add_0"
REGION, GRAPH = "Torch-Compiled Region: 0/0", "## Call CompiledFxGraph f ##"
#: What the host does in an event of this name and in none below it.
OWN = {
    GC: "gc",
    LOOKUP: "guards",
    REGION: "python",
    GRAPH: "compiled_wrapper",
    TRITON: "compiled_wrapper",
    "aten::add": "op_dispatch",
    VIEW: "op_dispatch",
}


@dataclass(frozen=True)
class Work:
    us: float
    name: str | None = None


@dataclass(frozen=True)
class Launch:
    kernel_us: float
    name: str | None = "aten::add"
    before_us: float = 5.0
    call_us: float = 5.0
    after_us: float = 2.0


@dataclass(frozen=True)
class Wait:
    """For all that was launched."""

    us: float = 5.0


@dataclass(frozen=True)
class Inside:
    name: str
    actions: tuple[Action, ...]


Action = Work | Launch | Wait | Inside


@dataclass
class Kernel:
    begin: float
    end: float
    returned: float  #: The launch's call.
    queued: bool  #: It began because the one before had ended, not because it was launched.


@dataclass
class Machine:
    """A host and a GPU that works through a queue. Recording adds `launch_us` to each launch, `wait_us` to each wait,
    and where it is `rich` `event_us` to each other event, but a collection. These take `collecting` times as long."""

    launch_us: float = 0.0
    wait_us: float = 0.0
    event_us: float = 0.0
    rich: bool = False
    collecting: float = 1.0
    latency_us: float = 3.0  #: From a launch's return to its kernel on an idle GPU.
    next_us: float = 1.0  #: From one kernel to the next in the queue.
    now: float = 0.0
    events: list[Json] = field(default_factory=list)
    host: list[tuple[float, float, str]] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)

    @property
    def free(self) -> float:
        return self.kernels[-1].end if self.kernels else -math.inf

    def spend(self, us: float, cause: str) -> None:
        self.host.append((self.now, self.now + us, cause))
        self.now += us

    def do(self, action: Action, around: str = "python") -> None:
        began, name = self.now, getattr(action, "name", None)
        own = OWN[name] if name else around
        self.spend(0.0 if name in (None, GC) else self.event_us, own)
        if isinstance(action, Work):
            self.spend(action.us * (self.collecting if name == GC else 1), own)
        elif isinstance(action, Launch):
            self.spend(action.before_us, own)
            self.launch(action)
            self.spend(action.after_us, own)
        elif isinstance(action, Wait):
            self.spend(max(self.free - self.now, 0.0) + action.us + self.wait_us, "sync_wait")
            self.events.append(make_call(began, self.now, name="cudaDeviceSynchronize"))
        else:
            for each in action.actions:
                self.do(each, own)
        if name == GC or (name and self.rich):
            made = make_span if name == GC else make_op
            self.events.append(made(began, self.now, name=name))

    def launch(self, action: Launch) -> None:
        called, number = self.now, len(self.kernels) + 1
        self.spend(action.call_us + self.launch_us, "launch_call")
        alone, queued = self.now + self.latency_us, self.free + self.next_us
        begin = max(alone, queued)
        self.kernels.append(Kernel(begin, begin + action.kernel_us, self.now, queued > alone))
        kernel = make_kernel(begin, begin + action.kernel_us, correlation=number)
        self.events += [make_call(called, self.now, correlation=number), kernel]

    def step(self, number: int, actions: tuple[Action, ...]) -> float:
        began = self.now
        for each in actions:
            self.do(each)
        self.events.append(make_span(began, self.now, name=f"tracekit.step#{number}"))
        wall_us = self.now - began
        self.now += 50
        return wall_us


def gaps_of(machine: Machine, wall_us: float) -> list[tuple[float, float, float, bool]]:
    """Begin and end of each stretch without a kernel, when what ended it had been launched, and whether that was
    queued."""
    begins = [*(each.begin for each in machine.kernels), wall_us]
    ends = [0.0, *(each.end for each in machine.kernels)]
    launched = [*(each.returned for each in machine.kernels), wall_us]
    return list(zip(ends, begins, launched, [*(each.queued for each in machine.kernels), False], strict=True))


def true_causes(machine: Machine, wall_us: float) -> dict[str, float]:
    """Why the GPU is idle in the one step of a machine, gap by gap."""
    causes: Counter[str] = Counter()
    for begin, end, launched, queued in gaps_of(machine, wall_us):
        until = min(max(launched, begin), end)
        for started, over, cause in machine.host:
            causes[cause] += max(min(over, until) - max(started, begin), 0.0)
        causes["device" if queued else "launch_latency"] += end - until
    return {cause: us for cause, us in causes.items() if us}


def known(light: Machine, rich: Machine) -> RecordingCost:
    """What a calibration finds of these machines: of a launch with its operator."""
    nothing, event = cost(0.0), cost(rich.event_us)
    return RecordingCost(
        EventCosts(cost(light.launch_us), cost(light.launch_us), nothing, nothing, cost(light.wait_us)),
        EventCosts(*[cost(rich.launch_us + rich.event_us)] * 2, event, event, cost(rich.wait_us)),
    )


def cost(us: float) -> Cost:
    return Cost(us, us, us)


def side_of(program: tuple[Action, ...], truth: Machine, light: Machine, rich: Machine, *, measured: bool) -> Side:
    """The side of a run that was timed on the first machine and recorded on the others; `measured` says whether it
    knows what recording adds."""
    recordings = []
    with tempfile.TemporaryDirectory() as folder, store.begun(Path(folder, "run"), force=False) as draft:
        for kind, machine, steps in (("light", light, 2), ("rich", rich, 1)):
            for number in range(steps):
                machine.step(number, program)
            path = write_trace(draft, machine.events).rename(draft / f"eager-{kind}.json")
            recordings.append(Recording(kind, path.name, steps, path.stat().st_size))  # type: ignore[arg-type]
        form = make_form("eager", (truth.step(0, program),) * 10)
        gc_us = math.fsum(over - began for began, over, cause in truth.host if cause == "gc")
        forms = (replace(form, recordings=tuple(recordings), collecting=Quartiles(gc_us, gc_us, gc_us)),)
        costs = known(light, rich) if measured else None
        store.finish(make_run(status="incomplete", forms=forms, recording_cost=costs), draft)
        return load_side(Path(folder, "run"), form="eager")


def trace_of(program: tuple[Action, ...], machine: Machine, folder: str) -> Path:
    """A trace file of two calls, made elsewhere."""
    for number in range(2):
        machine.step(number, program)
    return write_trace(Path(folder), machine.events)


def slack_us(truth: Machine, recorded: Machine) -> float:
    """What nobody can know: how soon a kernel follows in the queue that waits in none where it is recorded; and whether
    one waited that began hardly later than its launch alone would have had it."""
    kinds = [[each.queued for each in machine.kernels] for machine in (truth, recorded)]
    unlike = sum(a != b for a, b in zip(*kinds, strict=False))
    hardly = sum(queued and begin - launched < truth.latency_us for begin, _, launched, queued in gaps_of(truth, 0.0))
    return 1.0 + truth.latency_us * unlike + truth.next_us * hardly


def check(
    program: tuple[Action, ...], launch_us: float, event_us: float, *, measured: bool, collecting: float = 1.0
) -> None:
    """The truth is in every range; and where the costs are known the figures are the truth. Recorded collections take
    so many times as long."""
    truth, light = Machine(), Machine(launch_us, wait_us=launch_us, collecting=collecting)
    rich = Machine(launch_us + 6, launch_us + 6, event_us, rich=True, collecting=collecting)
    side = side_of(program, truth, light, rich, measured=measured)
    wall_us, ranges, residual_us = side.wall_us, side.idle_ranges(), side.idle_residual_us
    assert wall_us is not None and ranges is not None and residual_us is not None
    causes, slack = true_causes(truth, wall_us), slack_us(truth, light)
    assert math.fsum(causes.values()) == pytest.approx(side.unprofiled_idle_us)
    for cause in {*causes, *ranges}:
        said, us = ranges.get(cause, NOTHING), causes.get(cause, 0.0)
        assert said.low_us - slack <= us <= said.high_us + slack, (cause, us, said)
        if measured:
            assert said.us == pytest.approx(us, abs=slack), cause
    if measured:
        assert abs(residual_us) <= slack


def check_alone(program: tuple[Action, ...], launch_us: float, event_us: float) -> None:
    """The truth is in every range of one trace alone, and so is what was recorded."""
    truth, machine = Machine(), Machine(launch_us, 5.0, event_us, rich=True)
    wall_us = truth.step(0, program)
    with tempfile.TemporaryDirectory() as folder:
        path = trace_of(program, machine, folder)
        side, trace = load_side(path), Reading(cached=False).read(path)
    ranges, causes, slack = side.recorded_idle_ranges(), true_causes(truth, wall_us), slack_us(truth, machine)
    assert ranges is not None
    assert {cause: each.us for cause, each in ranges.items() if each.us} == pytest.approx(side.idle_by_cause())
    for cause in {*causes, *ranges}:
        said, us = ranges.get(cause, NOTHING), causes.get(cause, 0.0)
        assert said.low_us <= said.us <= said.high_us
        assert said.low_us - slack <= us <= said.high_us + slack, (cause, us, said)
    # What the ranges end at where recording adds nothing.
    again = estimate_idle(trace, None, (Rule(HostCost()),))
    assert again is not None
    assert {cause: each.us for cause, each in again.causes.items()} == pytest.approx(side.idle_by_cause(), abs=0.01)


def test_a_pause_between_queued_kernels_is_python_and_nothing_else() -> None:
    """Each launch begins its kernel at once or behind others. Where operators are recorded the GPU waits for them."""
    at_once = {"latency_us": -5.0, "next_us": 0.0}
    rich = Machine(launch_us=2.0, event_us=16.0, rich=True, **at_once)
    launches, bare = (Launch(20.0, before_us=0.0, after_us=5.0),) * 49, Launch(20.0, None, before_us=0.0, after_us=0.0)
    program = (bare, *launches, bare, Work(2020.0), bare, *launches, Wait(0.0))
    side = side_of(program, Machine(**at_once), Machine(**at_once), rich, measured=True)
    assert side.rich is not None and side.rich.idle is not None
    assert {each.cause: each.us for each in side.rich.idle.causes}["op_dispatch"] > 500
    assert side.unprofiled_idle_us == 1500.0
    assert side.idle_ranges() == {"python": Between(1500.0, 1500.0, 1500.0)}
    assert side.idle_residual_us == 0.0


lengths = st.integers(1, 240).map(lambda quarters: quarters / 4)


@st.composite
def programs(draw: st.DrawFn) -> tuple[Action, ...]:
    """Parts that the host holds up or the GPU, one after the other, and a wait."""

    def launches(name: str) -> tuple[Action, ...]:
        kernel_us, many = draw(lengths), draw(st.integers(1, 8))
        before_us, call_us, after_us = draw(lengths) / 4, 1 + draw(lengths) / 4, draw(lengths) / 8
        return tuple(Launch(kernel_us, name, before_us, call_us, after_us) for _ in range(many))

    def graph() -> Inside:
        return Inside(GRAPH, (Work(draw(lengths) / 2), *launches(TRITON)))

    def region() -> tuple[Action, ...]:
        broken = (graph(), Work(10 * draw(lengths)), graph()) if draw(st.booleans()) else (graph(),)
        return Work(draw(lengths), LOOKUP), Inside(REGION, (Work(draw(lengths) / 2), *broken, Work(2.0)))

    parts = {
        "operators": lambda: launches("aten::add"),
        "region": region,
        "python": lambda: (Work(10 * draw(lengths)),),
        "collection": lambda: (Work(5 * draw(lengths), GC),),
        "view": lambda: (Work(draw(lengths), VIEW),),
        "wait": lambda: (Wait(draw(lengths) / 4),),
    }
    chosen = draw(st.lists(st.sampled_from([*parts, "operators", "region"]), min_size=1, max_size=6))
    return (Launch(5.0), *(action for name in chosen for action in parts[name]()), Wait())


COMPILED = Inside(
    REGION,
    (
        *(Work(6.0), Inside(GRAPH, (Work(8.0), *(Launch(4.0, TRITON) for _ in range(8))))),
        *(Work(300.0), Inside(GRAPH, tuple(Launch(60.0, TRITON) for _ in range(8)))),
    ),
)
PROGRAMS = {
    "the host launches too late": (*(Launch(3.0) for _ in range(20)), Wait()),
    "each launch is under way before the kernel before has ended": (
        *(Launch(2.0, before_us=0.4, call_us=3.0, after_us=0.6) for _ in range(200)),
        Wait(),
    ),
    "the queue hides the host": (*(Launch(90.0) for _ in range(12)), Wait()),
    "both": (*(Launch(90.0) for _ in range(6)), Work(900.0), *(Launch(3.0) for _ in range(9)), Wait()),
    "a wait in the middle": (Launch(200.0), Wait(), Work(70.0), Work(12.0, VIEW), Launch(9.0), Launch(9.0), Wait()),
    "a collection": (Launch(50.0), Work(20.0), Work(400.0, GC), Launch(50.0), Wait()),
    "a graph break": (Work(12.0, LOOKUP), COMPILED, Wait()),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_longer_recorded_calls_move_no_cause_out_of_its_range(program: tuple[Action, ...]) -> None:
    for launch_us in (8.0, 16.0):
        check(program, launch_us, 4.0, measured=True)
        check(program, launch_us, 4.0, measured=False)


@pytest.mark.parametrize("collecting", [0.5, 3.0])
def test_collections_are_those_of_timed_calls_however_long_recorded_ones_took(collecting: float) -> None:
    check(PROGRAMS["a collection"], 8.0, 4.0, measured=True, collecting=collecting)


@fuzzed(12)
@given(programs(), st.sampled_from([0.0, 8.0, 16.0]), st.sampled_from([0.0, 4.0]), st.sampled_from([0.5, 1.0, 3.0]))
def test_where_it_is_known_what_recording_adds_causes_are_the_true_ones(
    program: tuple[Action, ...], launch_us: float, event_us: float, collecting: float
) -> None:
    check(program, launch_us, event_us, measured=True, collecting=collecting)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_of_one_trace_alone_the_true_causes_are_in_their_ranges(program: tuple[Action, ...]) -> None:
    check_alone(program, 2.0, 0.0)
    check_alone(program, 16.0, 4.0)


@fuzzed(8)
@given(programs(), st.sampled_from([2.0, 8.0, 16.0]), st.sampled_from([0.0, 4.0]))
def test_of_one_trace_of_any_program_the_true_causes_are_in_their_ranges(
    program: tuple[Action, ...], launch_us: float, event_us: float
) -> None:
    check_alone(program, launch_us, event_us)


@fuzzed(8)
@given(programs(), st.sampled_from([8.0, 16.0]), st.sampled_from([0.0, 4.0]))
def test_where_it_is_not_known_the_true_causes_are_in_their_ranges(
    program: tuple[Action, ...], launch_us: float, event_us: float
) -> None:
    check(program, launch_us, event_us, measured=False)
