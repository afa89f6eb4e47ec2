import contextlib
import gc
import itertools
import threading
import time
from collections.abc import Iterator
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from tests.measure.conftest import make_workload
from tests.simulated import FakeClock, make_forms

from tracekit.measure.forms import Form, compiled_form, eager_form, warm_up
from tracekit.measure.host import collecting_us
from tracekit.measure.timing import CallTime, Timings, time_forms, time_one
from tracekit.model.host_marks import Collection
from tracekit.model.progress import Silent
from tracekit.model.quartiles import HostTimes, Quartiles
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import BuiltWorkload


def asked(rounds: int) -> StoppingRule:
    return StoppingRule(rounds, 0.01, 30.0, rounds)


def test_each_round_times_every_form_once_in_an_order_of_its_own(workload: BuiltWorkload) -> None:
    forms = (eager_form(workload), compiled_form(workload))
    for form in forms:
        warm_up(form, Silent())
    timings = Timings()
    time_forms(forms, asked(8), 0, timings, Silent())
    rounds = [tuple(timings.order[i : i + 2]) for i in range(0, 16, 2)]
    assert {frozenset(each) for each in rounds} == {frozenset(("eager", "compiled"))}
    assert len(set(rounds)) == 2, "the order must not always be the same"
    assert {name: len(walls) for name, walls in timings.wall_us.items()} == {"eager": 8, "compiled": 8}
    assert timings.compilations == {"eager": 0, "compiled": 0}
    assert timings.of_rounds("eager", "device_us") == ()


def test_compiling_inside_a_timed_call_and_what_makes_torch_forget_are_counted(workload: BuiltWorkload) -> None:
    timings = Timings()
    time_forms((compiled_form(workload),), asked(2), 0, timings, Silent())
    assert timings.compilations == {"compiled": 1}
    assert time_one(eager_form(make_workload(torch.compiler.reset, ()))).compilations == 1
    assert time_one(eager_form(make_workload(lambda: None, ()))).compilations == 0


def test_an_interrupt_keeps_the_calls_that_were_timed(workload: BuiltWorkload) -> None:
    calls = iter(range(99))

    def call() -> object:
        # Four go before each timed one.
        if next(calls) == 3 * 5 + 4:
            raise KeyboardInterrupt
        return None

    timings = Timings()
    with pytest.raises(KeyboardInterrupt):
        time_forms((eager_form(make_workload(call, ())),), asked(5), 0, timings, Silent())
    assert len(timings.wall_us["eager"]) == 3


def until(*, target: float = 0.01, budget: float = 30.0, least: int = 20) -> StoppingRule:
    return StoppingRule(None, target, budget, least)


def run(rule: StoppingRule, clock: FakeClock, forms: tuple[Form, ...] | None = None) -> Timings:
    timings = Timings()
    time_forms(forms or make_forms(), rule, 3, timings, Silent(), timed=clock.timed, clock=clock.seconds)
    return timings


def taking(*walls_us: float) -> FakeClock:
    """Calls take these times in turn, whatever the form."""
    times = itertools.cycle(walls_us)
    return FakeClock(lambda _name: next(times))


@pytest.mark.parametrize(
    ("rule", "walls_us", "stopped", "rounds"),
    [
        # 50 calls that are kept, and four before each.
        (until(budget=0.4), (1000.0,), "target reached", 20),
        # Not before a verdict can be had.
        (until(budget=1.0), (1e6,), "budget spent", 5),
        (until(), (3.0,), "target reached", 2000),
        (until(), tuple(np.random.default_rng(2).lognormal(1, 1, 997)), "most rounds", 2000),
        # However long it takes.
        (asked(50), (1e9,), "asked number", 50),
    ],
)
def test_timing_stops_when_calls_agree_the_budget_is_spent_or_enough_were_made(
    rule: StoppingRule, walls_us: tuple[float, ...], stopped: str, rounds: int
) -> None:
    timings = run(rule, taking(*walls_us))
    assert (timings.stopped, len(timings.wall_us["compiled"])) == (stopped, rounds)
    assert (timings.of("eager", rule).target is None) == (rule.rounds is not None)


def test_every_second_round_calls_one_form_twice_by_turns_and_keeps_the_second_apart() -> None:
    timings = run(asked(20), taking(1000.0))
    rounds = {name: [number for number, _ in controls] for name, controls in timings.controls.items()}
    assert rounds == {"eager": [1, 5, 9, 13, 17], "compiled": [3, 7, 11, 15, 19]}
    assert len(timings.order) == 40
    for name in ("eager", "compiled"):
        rounds_called = [number for number, _ in timings.calls[name]]
        assert rounds_called == sorted(rounds_called) and set(rounds_called) == set(range(20))
        assert len(rounds_called) > len(timings.wall_us[name]) + len(timings.controls[name]), "untimed ones too"


def test_the_control_of_a_round_that_was_cut_short_is_dropped() -> None:
    timings = Timings()
    timings.add("eager", CallTime(1.0))
    timings.add("eager", CallTime(1.0), control_of=0)
    timings.add("eager", CallTime(1.0), control_of=1)
    assert [each.round for each in timings.of("eager", asked(5)).controls] == [0]
    assert timings.of("eager", asked(5)).stopped == "interrupted"


def test_how_fast_the_host_was_and_how_long_it_collected_are_told_of_the_calls_that_count_and_memory_of_all() -> None:
    timings = Timings()
    for at in range(5):
        timings.add("eager", CallTime(1.0, host_us=20.0 + at, collecting_us=float(at), peak_bytes=at))
    timings.add("eager", CallTime(1.0, host_us=90.0, collecting_us=90.0, peak_bytes=90), control_of=0)
    assert timings.middle(HostTimes, "eager", "host_us") == HostTimes(us=22.0, low=21.0, high=23.0)
    assert timings.middle(Quartiles, "eager", "collecting_us") == Quartiles(us=2.0, low=1.0, high=3.0)
    assert timings.most("eager", "peak_bytes") == 90
    assert timings.middle(HostTimes, "compiled", "host_us") is timings.most("compiled", "peak_bytes") is None


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls of a GPU's forms can be timed; Python collects only when it is told to."""
    for name in ("Event", "reset_peak_memory_stats", "max_memory_allocated", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, MagicMock())
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_gpu")
def test_the_collections_of_a_timed_call_are_measured_on_a_gpu_whatever_thread_they_are_on() -> None:
    def collect() -> None:
        began_ns = time.perf_counter_ns()
        gc.collect()
        took_us.append((time.perf_counter_ns() - began_ns) / 1e3)

    def call() -> None:
        collect()
        thread = threading.Thread(target=collect)
        thread.start()
        thread.join()

    took_us: list[float] = []
    callbacks = list(gc.callbacks)
    found = time_one(Form("eager", "cuda", call)).collecting_us
    assert found is not None and max(took_us) / 2 < found <= sum(took_us)
    assert time_one(Form("eager", "cpu", call)).collecting_us is None
    assert gc.callbacks == callbacks


@pytest.mark.usefixtures("without_gpu")
def test_a_collection_before_the_call_is_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Also before the call there may be work to wait for.
    waits = iter([gc.collect, lambda: None])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: next(waits)())
    assert time_one(Form("eager", "cuda", lambda: None)).collecting_us == 0.0


def test_of_a_collection_only_what_lies_in_the_call_counts() -> None:
    noted = [Collection(begin, end, 1, 1) for begin, end in ((0, 900), (500, 2000), (3000, 4000), (4500, 9000))]
    assert collecting_us(noted, 1000, 5000) == 1.0 + 1.0 + 0.5


def test_a_single_form_has_no_control_and_stops_by_its_own_interval() -> None:
    timings = run(until(), taking(1000.0), make_forms()[:1])
    assert (timings.stopped, timings.controls) == ("target reached", {})


def disturbed(own_us: float, calls: int) -> FakeClock:
    """Calls take twice as long as usual until their form has been called so often in a row."""
    row: list[str] = []

    def wall_us(name: str) -> float:
        row[:] = [each for each in row if each == name] + [name]
        return own_us * (2 if len(row) <= calls else 1)

    return FakeClock(wall_us)


@pytest.mark.parametrize(("own_us", "calls"), [(200.0, 4), (2000.0, 2), (100_000.0, 1)])
def test_every_timed_call_follows_calls_of_its_own_form_until_that_is_at_its_own_speed(
    own_us: float, calls: int
) -> None:
    clock = disturbed(own_us, calls)
    timings = run(asked(40), clock)
    assert {us for walls in timings.wall_us.values() for us in walls} == {own_us}
    assert {call.wall_us for controls in timings.controls.values() for _, call in controls} == {own_us}
    assert timings.seconds == pytest.approx(clock.seconds()), "what is not kept is on the budget"


def test_long_calls_are_not_repeated_where_the_call_before_was_of_the_same_form() -> None:
    clock = taking(100_000.0)
    run(asked(40), clock)
    changes = 1 + sum(one != other for one, other in itertools.pairwise(clock.called))
    assert len(clock.called) == 100 + changes, "one untimed call whenever the form changes, and no other"


def test_untimed_calls_are_made_in_one_go_with_the_timed_one() -> None:
    switched: list[str] = []

    @contextlib.contextmanager
    def ready() -> Iterator[None]:
        switched.append("on")
        yield
        switched.append("off")

    form = Form("eager", "cpu", lambda: switched.append("call"), ready)
    time_forms((form,), asked(2), 0, Timings(), Silent())
    assert switched == ["on", *["call"] * 5, "off"] * 2


class Compiling(FakeClock):
    """Calls of which the first of the compiled form take a minute and compile."""

    def __init__(self, number: int) -> None:
        compiled = itertools.count()
        super().__init__(lambda name: 60e6 if name == "compiled" and next(compiled) < number else 10_000.0)

    def timed(self, form: Form) -> CallTime:
        call = super().timed(form)
        return replace(call, compilations=int(call.wall_us == 60e6))


def test_calls_that_compile_are_kept_and_are_not_on_the_budget() -> None:
    timings = run(until(budget=5.0), Compiling(3))
    assert timings.compilations["compiled"] == 3
    assert sorted(timings.wall_us["compiled"])[-3:] == [60e6] * 3
    assert timings.stopped == "target reached"
    assert timings.compiling_seconds == pytest.approx(180)
    assert timings.seconds - 180 == pytest.approx(0.8, abs=0.2), "23 rounds of four calls"
    assert len(timings.wall_us["compiled"]) - len(timings.compiling_rounds) >= 20
    # A form that never stops compiling is not timed for ever.
    timings = run(until(budget=1.0), Compiling(10_000))
    assert timings.stopped == "budget spent"
    assert len(timings.wall_us["compiled"]) <= 25
