from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch")

from tracekit.capture import gpu_state  # noqa: E402
from tracekit.capture.forms import Form  # noqa: E402
from tracekit.capture.gpu_state import GpuWatch  # noqa: E402
from tracekit.capture.timing import Timings, time_forms  # noqa: E402
from tracekit.model.gpu import GpuSample, Moment  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.timing import StoppingRule  # noqa: E402

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
    with watched.timing():
        time_forms(tuple(map(watched.watched, forms)), THREE_ROUNDS, 0, Timings(), Silent())
    states = [watched.state_of(name) for name in ("eager", "compiled")]
    # The second round calls the eager form once more, as its control.
    for state, calls in zip(states, (4, 3), strict=True):
        assert state is not None
        assert [each.moment for each in state.samples] == ["before", *["during"] * calls, "after"]
    assert states[0] is not None and states[1] is not None
    assert not set(states[0].during()) & set(states[1].during())
    assert states[0].power_limit_w == 700


def test_samples_are_taken_outside_of_what_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(FakeGpu):
        def sample(self, moment: Moment, seconds: float) -> GpuSample:
            time.sleep(0.05)
            return super().sample(moment, seconds)

    monkeypatch.setattr(gpu_state, "SECONDS_BETWEEN", 0.0)
    watched = watch(monkeypatch, Slow())
    timings = Timings()
    time_forms((watched.watched(Form("eager", "cpu", lambda: None)),), THREE_ROUNDS, 0, timings, Silent())
    assert max(timings.wall_us["eager"]) < 40_000


def test_the_form_s_own_block_is_kept_and_left_before_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class Noting(FakeGpu):
        def sample(self, moment: Moment, seconds: float) -> GpuSample:
            events.append("sample")
            return super().sample(moment, seconds)

    @contextmanager
    def ready() -> Iterator[None]:
        events.append("on")
        yield
        events.append("off")

    form = watch(monkeypatch, Noting()).watched(Form("compiled", "cpu", lambda: None, ready))
    with form.ready():
        events.append("call")
    assert events == ["on", "call", "off", "sample"]


def test_the_driver_is_not_asked_more_often_than_five_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu()
    form = watch(monkeypatch, gpu).watched(Form("eager", "cpu", lambda: None))
    for _ in range(50):
        with form.ready():
            pass
    assert gpu.asked == 1


def test_counters_are_told_as_what_they_grew_by(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch(monkeypatch, FakeGpu([{"power": 5.0, "temperature": 0.0}, {"power": 25.0, "temperature": 0.0}]))
    with watched.timing():
        pass
    state = watched.state_of("eager")
    assert state is not None
    assert state.slowed_us == {"power": 20.0, "temperature": 0.0}


def test_counters_that_cannot_be_read_at_both_ends_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch(monkeypatch, FakeGpu([None, {"power": 25.0}]))
    with watched.timing():
        pass
    state = watched.state_of("eager")
    assert state is not None
    assert state.slowed_us is None


def test_without_nvml_a_form_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch(monkeypatch, None)
    form = Form("eager", "cpu", lambda: None)
    assert watched.watched(form) is form
    with watched.timing():
        pass
    assert watched.state_of("eager") is None


def test_on_a_cpu_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_state, "find_gpu", None)
    assert GpuWatch("cpu").state_of("eager") is None


def test_an_interrupt_while_timing_keeps_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch(monkeypatch, FakeGpu())
    with pytest.raises(KeyboardInterrupt), watched.timing():
        raise KeyboardInterrupt
    state = watched.state_of("eager")
    assert state is not None
    assert [each.moment for each in state.samples] == ["before", "after"]
