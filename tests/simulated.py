"""Machines that keep time badly, in known ways: what a verdict is worth is measured on them.

A simulated run goes through `time_forms` and `judge` as a real one does, with the clock and the calls made up.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace
from tests.sides import make_form, make_side

from tracekit.capture.forms import Form
from tracekit.capture.timing import CallTime, Timings, time_forms
from tracekit.comparison.judging.verdict import judge
from tracekit.model.comparison import Verdict
from tracekit.model.note import Note
from tracekit.model.progress import Silent
from tracekit.model.run import FormName, FormResult
from tracekit.model.timing import ProcessTimes, StoppingRule

Random = np.random.Generator
#: The logarithm of how much longer a call takes than it should; called once a call, in the order of the calls.
Noise = Callable[[FormName], float]
Machine = Callable[[Random], Noise]

EAGER_US = 10_000.0
#: How many times as long a call takes after one of the other form, as measured of the MLP on a CPU.
AFTER_ANOTHER: dict[FormName, float] = {"eager": 1.15, "compiled": 1.10}
RULE = StoppingRule(rounds=None, target=0.01, budget_seconds=30.0, least=20)


def make_forms() -> tuple[Form, ...]:
    return tuple(Form(name, "cpu", lambda: None) for name in ("eager", "compiled"))  # type: ignore[arg-type]


@dataclass
class FakeClock:
    """A clock that stands still but for the calls that are made."""

    walls_us: Callable[[FormName], float]
    now_us: float = 0.0
    called: list[FormName] = field(default_factory=list)

    def timed(self, form: Form) -> CallTime:
        wall_us = self.walls_us(form.name)
        self.now_us += wall_us
        self.called.append(form.name)
        return CallTime(wall_us)

    def seconds(self) -> float:
        return self.now_us / 1e6


def steady(random: Random) -> Noise:
    return lambda _name: random.normal(0, 0.01)


def heavy_tails(random: Random) -> Noise:
    """Student's t with 2 degrees of freedom, and now and then a call that takes half as long again."""

    def noise(_name: FormName) -> float:
        hiccup = 0.4 if random.random() < 0.05 else 0.0
        return float(0.008 * random.standard_t(2) + hiccup)

    return noise


def autoregressive(random: Random, memory: float = 0.9, size: float = 0.02) -> Noise:
    """Each call remembers the one before, whichever form it was: half of that, and half of its own."""
    level = random.normal(0, size)

    def noise(_name: FormName) -> float:
        nonlocal level
        level = memory * level + random.normal(0, size * math.sqrt(1 - memory**2))
        return level + random.normal(0, 0.005)

    return noise


def drifting(random: Random) -> Noise:
    """The machine becomes 20 % slower over 400 calls."""
    calls = 0

    def noise(_name: FormName) -> float:
        nonlocal calls
        calls += 1
        return 0.2 * min(calls / 400, 1.0) + random.normal(0, 0.01)

    return noise


def two_clocks(random: Random) -> Noise:
    """Two speeds 8 % apart that the machine keeps for 25 calls on average."""
    slow = random.random() < 0.5

    def noise(_name: FormName) -> float:
        nonlocal slow
        if random.random() < 1 / 25:
            slow = not slow
        return 0.08 * slow + random.normal(0, 0.008)

    return noise


def of_each_form(machine: Machine) -> Machine:
    """The same for the calls of each form by themselves, so that rounds do not spare their ratio."""

    def own(random: Random) -> Noise:
        each = {name: machine(random) for name in ("eager", "compiled")}
        return lambda name: each[name](name)

    return own


own_clocks = of_each_form(two_clocks)


def strangers_cache(random: Random) -> Noise:
    """A call is slower after one of the other form, the eager one by 15 % and the compiled one by 10 %."""
    before: FormName | None = None

    def noise(name: FormName) -> float:
        nonlocal before
        stranger = math.log(AFTER_ANOTHER[name]) if before not in (None, name) else 0.0
        before = name
        return stranger + random.normal(0, 0.01)

    return noise


MACHINES: dict[str, Machine] = {
    "independent noise, 1 %": steady,
    "heavy tails and hiccups": heavy_tails,
    "memory shared by both forms": autoregressive,
    "memory of each form": of_each_form(lambda random: autoregressive(random, 0.8, 0.015)),
    "drift, 20 % in 400 calls": drifting,
    "two clock speeds 8 % apart": two_clocks,
    "two speeds of each form": own_clocks,
    "slower after the other form": strangers_cache,
}


def measure(speedup: float, noise: Noise, rule: StoppingRule, seed: int) -> Timings:
    """One process: both forms timed on such a machine, eager `speedup` times as long as compiled."""
    true_us = {"eager": EAGER_US, "compiled": EAGER_US / speedup}
    clock, timings = FakeClock(lambda name: true_us[name] * math.exp(noise(name))), Timings()
    time_forms(make_forms(), rule, seed, timings, Silent(), timed=clock.timed, clock=clock.seconds)
    return timings


def judged(runs: Iterable[Timings], rule: StoppingRule) -> tuple[Verdict, tuple[Note, ...]]:
    """The verdict on one process and the repeats after it."""
    own, *repeats = runs
    sides = (make_side(name, form=_form(name, own, repeats, rule)) for name in ("eager", "compiled"))  # type: ignore[arg-type]
    return judge(*sides, tuple(own.order))


def _form(name: FormName, own: Timings, repeats: list[Timings], rule: StoppingRule) -> FormResult:
    processes = tuple(
        ProcessTimes(tuple(each.wall_us[name]), None, each.of(name, rule).controls, each.stopped, each.seconds)
        for each in repeats
    )
    return replace(make_form(name, own.wall_us[name]), timing=replace(own.of(name, rule), processes=processes))


def simulate(
    machine: Machine,
    speedup: float,
    seed: int,
    *,
    rule: StoppingRule = RULE,
    processes: int = 1,
    offset: float = 0.0,
) -> tuple[Verdict, tuple[Note, ...]]:
    """One run of `processes`, in each of which every form is off by a constant of standard deviation `offset`."""
    random = np.random.default_rng(seed)
    runs = []
    for process in range(processes):
        shift = speedup * math.exp(random.normal(0, offset * math.sqrt(2))) if offset else speedup
        runs.append(measure(shift, machine(random), rule, seed + 7919 * process))
    return judged(runs, rule)
