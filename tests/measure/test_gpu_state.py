"""The state and the memory of a GPU that is pretended; a real one's are in tests/gpu."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from tracekit.measure import gpu_state
from tracekit.measure.forms import Form
from tracekit.measure.gpu_state import GpuWatch
from tracekit.measure.timing import Timings, time_forms
from tracekit.model.gpu import FormMemory, GpuSample, MemoryUse, Moment
from tracekit.model.progress import Silent
from tracekit.model.run import FormName
from tracekit.model.timing import StoppingRule

NAMES: tuple[FormName, ...] = ("eager", "compiled")
THREE_ROUNDS = StoppingRule(rounds=3, target=0.01, budget_seconds=60, least=3)


class FakeGpu:
    def __init__(self, counters: list[dict[str, float] | None] | None = None) -> None:
        self.counters = iter(counters or [])
        self.asked = 0

    def sample(self, moment: Moment, seconds: float) -> GpuSample:
        self.asked += 1
        return GpuSample(moment, seconds, 1000 + self.asked, None, None, None, None, None)

    def slowed_us(self) -> dict[str, float] | None:
        return next(self.counters, None)

    def power_limit_w(self) -> float | None:
        return 700.0


def watch(monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu | None) -> GpuWatch:
    monkeypatch.setattr(gpu_state, "find_gpu", lambda _properties: gpu)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _index: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    return GpuWatch("cuda")


def test_each_form_has_the_samples_between_its_own_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_state, "SECONDS_BETWEEN", 0.0)
    watched = watch(monkeypatch, FakeGpu())
    forms = (Form("eager", "cpu", lambda: None), Form("compiled", "cpu", lambda: None))
    with watched.timing(forms) as timed:
        time_forms(timed, THREE_ROUNDS, 0, Timings(), Silent())
    states = [watched.state_of(name) for name in ("eager", "compiled")]
    # The second round calls the eager form once more, as its control.
    for state, calls in zip(states, (4, 3), strict=True):
        assert state is not None and state.power_limit_w == 700
        assert [each.moment for each in state.samples] == ["before", *["during"] * calls, "after"]
    assert states[0] is not None and states[1] is not None
    assert not set(states[0].during()) & set(states[1].during())


def test_the_driver_is_asked_behind_the_form_s_own_block_and_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_state, "SECONDS_BETWEEN", 60.0)
    gpu, events = FakeGpu(), []

    @contextmanager
    def ready() -> Iterator[None]:
        events.append(("on", gpu.asked))
        yield
        events.append(("off", gpu.asked))

    with watch(monkeypatch, gpu).timing((Form("compiled", "cpu", lambda: None, ready),)) as (form,):
        for _ in range(50):
            with form.ready():
                pass
    # Once before all of them.
    assert events == [("on", 1), ("off", 1), *[("on", 2), ("off", 2)] * 49]


@pytest.mark.parametrize(
    ("counters", "slowed_us"),
    [
        ([{"power": 5.0, "heat": 0.0}, {"power": 25.0, "heat": 0.0}], {"power": 20.0, "heat": 0.0}),
        # Not to be read at both ends.
        ([None, {"power": 25.0}], None),
    ],
)
def test_counters_are_told_as_what_they_grew_by_also_after_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, counters: Any, slowed_us: dict[str, float] | None
) -> None:
    watched = watch(monkeypatch, FakeGpu(counters))
    with pytest.raises(KeyboardInterrupt), watched.timing(()):
        raise KeyboardInterrupt
    state = watched.state_of("eager")
    assert state is not None
    assert state.slowed_us == slowed_us
    assert [each.moment for each in state.samples] == ["before", "after"]


def test_without_nvml_a_form_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch(monkeypatch, None)
    form = Form("eager", "cpu", lambda: None)
    with watched.timing((form,)) as (timed,):
        assert timed is form
    assert watched.state_of("eager") is None


def test_nothing_is_asked_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_state, "find_gpu", None)
    monkeypatch.setattr(torch, "cuda", None)
    watched, form = GpuWatch("cpu"), Form("eager", "cpu", lambda: 1 / 0)
    with watched.warming("eager"):
        pass
    watched.settle((form, form))
    with watched.timing((form,)) as (timed,):
        assert timed is form
    assert (watched.seen("eager"), watched.calling_bytes("eager")) == ({"memory": None, "gpu_state": None}, 0)


class Allocator:
    """Counts as torch's does: peaks since they were last reset."""

    def __init__(self) -> None:
        self.allocated = self.reserved = self.peak = self.reserved_peak = 0
        self.pools: list[dict[str, Any]] = []

    def take(self, held: int, cached: int) -> None:
        self.peak = max(self.peak, self.allocated + held)
        self.reserved = max(self.reserved, self.allocated + held) + cached
        self.reserved_peak = max(self.reserved_peak, self.reserved)

    def empty(self) -> None:
        self.reserved = self.allocated

    def reset(self) -> None:
        self.peak, self.reserved_peak = self.allocated, self.reserved


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Allocator:
    found = Allocator()
    monkeypatch.setattr(gpu_state, "synchronize", lambda _device: None)
    for name, function in {
        "empty_cache": found.empty,
        "reset_peak_memory_stats": found.reset,
        "memory_allocated": lambda: found.allocated,
        "max_memory_allocated": lambda: found.peak,
        "max_memory_reserved": lambda: found.reserved_peak,
        "memory_snapshot": lambda: found.pools,
    }.items():
        monkeypatch.setattr(torch.cuda, name, function)
    return found


def test_a_warm_up_s_peak_leaves_out_what_was_cached_before_and_steady_calls_have_their_own(
    allocator: Allocator,
) -> None:
    allocator.allocated, allocator.reserved = 100, 5000
    watched = GpuWatch("cuda")
    with watched.warming("eager"):
        allocator.take(held=300, cached=50)
        allocator.take(held=20, cached=0)
    memory = FormMemory(100, MemoryUse(400, 450), None, 0, 0)
    assert (watched.seen("eager")["memory"], watched.calling_bytes("eager")) == (memory, 300)
    watched.settle((Form("eager", "cuda", lambda: allocator.take(held=30, cached=0)),))
    memory = replace(memory, steady=MemoryUse(130, 130))
    assert (watched.seen("eager")["memory"], watched.calling_bytes("eager")) == (memory, 30)


def test_every_form_has_its_memory_at_hand_when_timing_begins(
    allocator: Allocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: events.append("empty"))
    forms = tuple(Form(name, "cuda", partial(events.append, f"call {name}")) for name in NAMES)
    watched = GpuWatch("cuda")
    for name in NAMES:
        with watched.warming(name):
            events.clear()
    watched.settle(forms)
    # The cache is emptied before each is measured, so the first one's is filled once more.
    assert events == ["empty", "call eager", "empty", "call compiled", "call eager"]


def test_a_form_s_graph_pools_are_what_its_warm_up_added_where_torch_tells_pools(allocator: Allocator) -> None:
    allocator.pools = [{"total_size": 1000, "segment_pool_id": (0, 0)}, {"total_size": 7, "segment_pool_id": (0, 1)}]
    watched = GpuWatch("cuda")
    with watched.warming("eager"):
        allocator.pools.append({"total_size": 40, "segment_pool_id": (0, 2)})
    allocator.pools = [{"total_size": 1000}]
    with watched.warming("compiled"):
        pass
    eager, compiled = (watched.seen(name)["memory"] for name in NAMES)
    assert (eager.graph_pool_bytes, eager.others_pool_bytes) == (40, 7)
    assert (compiled.graph_pool_bytes, compiled.others_pool_bytes) == (None, None)
