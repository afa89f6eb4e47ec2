"""Machines that keep time badly, in known ways: what a verdict is worth is measured on them.

A simulated run goes through `time_forms` and `judge` as a real one does, with the clock and the calls made up.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace
from tests.sides import make_form, make_side

from tracekit.comparison.judging.verdict import judge
from tracekit.measure.forms import Form
from tracekit.measure.timing import CallTime, Timings, time_forms
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
    tick_us: float = 0.0  #: The clock's step; 0 for one that shows everything.
    now_us: float = 0.0
    called: list[FormName] = field(default_factory=list)

    def timed(self, form: Form) -> CallTime:
        wall_us = self.walls_us(form.name)
        if self.tick_us:
            wall_us = round(wall_us / self.tick_us) * self.tick_us
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


def of_compiled(effect: Machine) -> Machine:
    """Independent noise of 1 % on both forms, and the effect on the compiled one alone."""

    def own(random: Random) -> Noise:
        more = effect(random)
        return lambda name: random.normal(0, 0.01) + (more(name) if name == "compiled" else 0.0)

    return own


def switching(stay: float, size: float = 0.05) -> Machine:
    """The compiled form has two speeds so far apart, faster and slower than its mean, and keeps each for `stay` of its
    calls on average."""

    def effect(random: Random) -> Noise:
        slow = random.random() < 0.5

        def noise(_name: FormName) -> float:
            nonlocal slow
            if random.random() < 1 / stay:
                slow = not slow
            return size / 2 if slow else -size / 2

        return noise

    return of_compiled(effect)


def remembering(memory: float = 0.98, size: float = 0.02) -> Machine:
    """Each call of the compiled form remembers the one before."""
    return of_compiled(lambda random: autoregressive(random, memory, size))


def warming(calls: float, size: float = 0.1, *, evenly: bool = True) -> Machine:
    """The compiled form begins slower and is at its speed after so many of its calls; or comes nearer to it by 63 % in
    as many."""

    def effect(_random: Random) -> Noise:
        made = 0

        def noise(_name: FormName) -> float:
            nonlocal made
            made += 1
            return size * (max(0.0, 1 - made / calls) if evenly else math.exp(-made / calls))

        return noise

    return of_compiled(effect)


def interrupted(random: Random) -> Noise:
    """One call of the compiled form in twenty takes half as long again."""
    return of_compiled(lambda random: lambda _name: 0.4 if random.random() < 0.05 else 0.0)(random)


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


#: What lasts longer than a call, and how many of the compiled form's calls it does: a run shorter than five times that
#: cannot know.
LASTING: dict[str, tuple[Machine, float]] = {
    "5 % apart for 30 calls": (switching(30), 30),
    "5 % apart for 200 calls": (switching(200), 200),
    "5 % apart for 1,000 calls": (switching(1000), 1000),
    "memory 0.98 a call": (remembering(), 2 / (1 - 0.98)),
    "two speeds of each form, 25 calls": (own_clocks, 25),
    "warms up by 10 % in 300 calls": (warming(300), 300),
    "warms up by 10 %, e-fold in 100 calls": (warming(100, evenly=False), 100),
}
#: What does not last.
PASSING: dict[str, Machine] = {
    "independent noise, 1 %": steady,
    "drift, 20 % in 400 calls": drifting,
    "heavy tails and hiccups": heavy_tails,
    "hiccups of compiled": interrupted,
}


def measure(speedup: float, noise: Noise, rule: StoppingRule, seed: int, tick_us: float = 0.0) -> Timings:
    """One process: both forms timed on such a machine, eager `speedup` times as long as compiled."""
    true_us = {"eager": EAGER_US, "compiled": EAGER_US / speedup}
    clock, timings = FakeClock(lambda name: true_us[name] * math.exp(noise(name)), tick_us), Timings()
    time_forms(make_forms(), rule, seed, timings, Silent(), timed=clock.timed, clock=clock.seconds)
    return timings


def judged(runs: Iterable[Timings], rule: StoppingRule) -> tuple[Verdict, tuple[Note, ...]]:
    """The verdict on one process and the repeats after it."""
    own, *repeats = runs
    sides = (make_side(name, form=_form(name, own, repeats, rule)) for name in ("eager", "compiled"))  # type: ignore[arg-type]
    return judge(*sides, tuple(own.order))


def _form(name: FormName, own: Timings, repeats: list[Timings], rule: StoppingRule) -> FormResult:
    processes = tuple(
        ProcessTimes(
            *(tuple(each.wall_us[name]), None, each.of(name, rule).controls, each.stopped, each.seconds),
            unsteady=each.unsteady_rounds(),
        )
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
    tick_us: float = 0.0,
) -> tuple[Verdict, tuple[Note, ...]]:
    """One run of `processes`, in each of which every form is off by a constant of standard deviation `offset`."""
    random = np.random.default_rng(seed)
    runs = []
    for process in range(processes):
        shift = speedup * math.exp(random.normal(0, offset * math.sqrt(2))) if offset else speedup
        runs.append(measure(shift, machine(random), rule, seed + 7919 * process, tick_us))
    return judged(runs, rule)
