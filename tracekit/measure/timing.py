"""Timing without the profiler: synchronised calls, the forms in alternation."""

import itertools
import math
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from msgspec import Struct, field

from tracekit.measure.compilation import watch_compilation
from tracekit.measure.device import synchronize
from tracekit.measure.forms import Form
from tracekit.measure.host import collecting_us, collections_noted, host_us
from tracekit.measure.ranks import ALONE, Ranks
from tracekit.model.host_marks import Collection
from tracekit.model.progress import Progress
from tracekit.model.quartiles import Quartiles
from tracekit.model.run import FormName
from tracekit.model.timing import ControlCall, FormTiming, ProcessTimes, StoppingRule, StopReason
from tracekit.statistics.interval import FEWEST, Values
from tracekit.statistics.steady import FEWEST_STRETCHES, mean_interval, steady_from

#: In one round of so many, one form is called twice: against itself it shows how far equal work seems to differ.
CONTROL_EVERY = 2
#: After another form's calls, and after it was switched on, a form is at its own speed when it was called so often or
#: ran so long: measured of models whose calls take 0.2 and 0.8 ms on a CPU (docs/timing.md).
SETTLING_CALLS = 4
SETTLING_US = 5000.0
#: Calls of microseconds would fill the manifest before they fill the budget.
MOST_ROUNDS = 2000
#: The interval is looked at whenever there are so many times as many rounds: seldom, so that looking changes little.
GROWTH = 1.25
#: So many rounds that compiled, and fewer that did not than an interval takes, are no timing.
MOST_COMPILING = 16
#: Clocks switch and machines warm up in seconds: calls that agree for less than this part of the budget prove little.
LEAST_OF_BUDGET = 0.1
Middle = TypeVar("Middle", bound=Quartiles)


class CallTime(Struct, frozen=True):
    """One timed call, with the time between two device events and the most memory held; None without a GPU. Of several
    ranks it is each time the slowest's, or the largest; `own_us` and `own_peak_bytes` are this rank's, None where it is
    the only one. `host_us` is how fast this rank's host was around it, and `collecting_us` how much of it Python
    collected garbage; None on a CPU."""

    wall_us: float
    device_us: float | None = None
    peak_bytes: int | None = None
    compilations: int = 0
    own_us: float | None = None
    own_peak_bytes: int | None = None
    host_us: float | None = None
    collecting_us: float | None = None


class Timings(Struct):
    """The timed calls as they come in, so that an interrupt keeps those that were made.

    `timed` has a form's call of each round, `controls` the second ones of one form in a round, with the round. `calls`
    are all calls of a form as they were made, controls and the untimed ones too: the round and the wall time of each.
    `compilations` counts what was compiled inside timed calls and controls. `seconds` is how long all of it took,
    `compiling_seconds` how much of that were calls that compiled, `compiling_rounds` (from 0) are where.
    """

    timed: dict[FormName, list[CallTime]] = field(default_factory=dict)
    controls: dict[FormName, list[tuple[int, CallTime]]] = field(default_factory=dict)
    calls: dict[FormName, list[tuple[int, float]]] = field(default_factory=dict)
    compilations: dict[FormName, int] = field(default_factory=dict)
    order: list[FormName] = field(default_factory=list)
    stopped: StopReason = "interrupted"
    seconds: float = 0.0
    compiling_seconds: float = 0.0
    compiling_rounds: set[int] = field(default_factory=set)

    def add(self, name: FormName, call: CallTime, control_of: int | None = None) -> None:
        """Keeps one call; `control_of` is the round of which it is the control."""
        round_ = len(self.timed.get(name, ())) if control_of is None else control_of
        self.calls.setdefault(name, []).append((round_, call.wall_us))
        self.compilations[name] = self.compilations.get(name, 0) + call.compilations
        if call.compilations:
            self.compiling_seconds += call.wall_us / 1e6
            self.compiling_rounds.add(round_)
        if control_of is None:
            self.timed.setdefault(name, []).append(call)
            self.order.append(name)
        else:
            self.controls.setdefault(name, []).append((control_of, call))

    @property
    def wall_us(self) -> dict[FormName, list[float]]:
        """The wall time of each form's call of each round."""
        return {name: [call.wall_us for call in calls] for name, calls in self.timed.items()}

    def of_rounds(self, name: FormName, figure: str) -> tuple[float, ...]:
        """That figure of the form's call of each round; empty where calls have it not."""
        figures = (getattr(call, figure) for call in self.timed.get(name, ()))
        return tuple(value for value in figures if value is not None)

    def most(self, name: FormName, figure: str) -> int | None:
        """The largest of all timed calls, controls too; None where calls have it not."""
        calls = [*self.timed.get(name, ()), *(call for _round, call in self.controls.get(name, ()))]
        return max((value for call in calls if (value := getattr(call, figure)) is not None), default=None)

    def middle(self, kind: type[Middle], name: FormName, figure: str) -> Middle | None:
        """The quartiles of that figure; None where calls have it not."""
        values = self.of_rounds(name, figure)
        if not values:
            return None
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
        return kind(middle, low, high)

    def of(self, name: FormName, rule: StoppingRule) -> FormTiming:
        """How the form was timed, for the manifest."""
        target, budget_seconds = (rule.target, rule.budget_seconds) if rule.rounds is None else (None, None)
        return FormTiming(
            self.stopped, target, budget_seconds, self.seconds, self._controls(name), unsteady=self.unsteady_rounds()
        )

    def process(self, name: FormName) -> ProcessTimes:
        """The form's times as those of a process that repeats another's."""
        return ProcessTimes(
            wall_us=self.of_rounds(name, "wall_us"),
            device_us=self.of_rounds(name, "device_us") or None,
            controls=self._controls(name),
            stopped=self.stopped,
            seconds=self.seconds,
            during_timing=self.compilations.get(name, 0),
            unsteady=self.unsteady_rounds(),
        )

    def unsteady_rounds(self) -> int:
        """How many rounds at the beginning are left out because what was timed had not settled."""
        first = steady_from(self.settling_logs())
        return self._without_compiling()[first] if first else 0

    def settling_logs(self) -> Values:
        """What is to settle, of the rounds in which nothing was compiled: the logarithm of one form's time, or of the
        ratio of two forms'."""
        rounds = self._without_compiling()
        walls = [np.log([us[each] for each in rounds]) for us in self.wall_us.values()]
        return np.asarray(walls[0] - walls[1] if len(walls) == 2 else walls[0] if walls else ())

    def _without_compiling(self) -> list[int]:
        rounds = min(map(len, self.timed.values()), default=0)
        return [number for number in range(rounds) if number not in self.compiling_rounds]

    def _controls(self, name: FormName) -> tuple[ControlCall, ...]:
        """The control of a round that was cut short has no partner: it is left out."""
        whole, controls = len(self.timed.get(name, ())), self.controls.get(name, ())
        return tuple(ControlCall(number, call.wall_us, call.device_us) for number, call in controls if number < whole)


class Stopping:
    """Watches one timing. `tell` hears how wide the interval is, whenever it was looked at."""

    def __init__(self, rule: StoppingRule, tell: Callable[[str], None]) -> None:
        self._rule, self._tell = rule, tell
        self._next_look = max(rule.least, FEWEST)

    def reason(self, rounds: int, logs: Callable[[], Values], made: int, seconds: float) -> StopReason | None:
        """Why to stop after `made` rounds, of which `rounds` count because nothing was compiled in them, and `seconds`;
        None to go on. `logs` gives the logarithms of one form's times, or of the ratio of two forms', a value for each
        round that counts. `seconds` are without what compiling took."""
        if self._rule.rounds is not None:
            return "asked number" if made >= self._rule.rounds else None
        if rounds < FEWEST:
            # Of a form that never stops compiling there is no interval to wait for.
            return "budget spent" if made >= MOST_COMPILING + FEWEST else None
        long_enough = seconds >= LEAST_OF_BUDGET * self._rule.budget_seconds
        if rounds >= MOST_ROUNDS or (rounds >= self._next_look and long_enough):
            self._next_look = math.ceil(rounds * GROWTH)
            settling = logs()
            found = mean_interval(settling[steady_from(settling) :])
            half = math.expm1(found.half_width)
            self._tell(f"{rounds} rounds, ±{half * 100:.2g} %")
            if half <= self._rule.target and found.stretches >= FEWEST_STRETCHES:
                return "target reached"
        if seconds >= self._rule.budget_seconds:
            return "budget spent"
        return "most rounds" if made >= MOST_ROUNDS else None


def time_forms(
    forms: tuple[Form, ...],
    rule: StoppingRule,
    seed: int,
    timings: Timings,
    progress: Progress,
    *,
    ranks: Ranks = ALONE,
    timed: Callable[[Form], CallTime] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Fills `timings` with calls of each form, round after round, until the rule says stop.

    Each round calls every form once, in an order drawn anew, so that drift of the machine meets both alike. Every
    second round calls one form once more, the forms by turns: the A/A control, a fifth of the timed calls. Untimed
    calls of the same form go before each: whoever runs one form finds caches and guards as it left them, not as the
    other did. Calls that compile are not on the budget. `ranks` make the same calls in the same order: the first of
    them says when to stop. `timed` and `clock` are for tests.
    """
    shuffle, measure = random.Random(seed).shuffle, timed or partial(time_one, ranks=ranks)
    both = len(forms) > 1
    calls = rule.rounds and rule.rounds * len(forms) + (rule.rounds // CONTROL_EVERY if both else 0)
    progress.phase("timing", total=calls, still=True)
    stopping = Stopping(rule, progress.detail)
    began = clock()
    before: FormName | None = None
    last_us = 0.0
    for number in itertools.count():
        round_ = [(form, False) for form in forms]
        if both and number % CONTROL_EVERY == CONTROL_EVERY - 1:
            round_.append((forms[number // CONTROL_EVERY % len(forms)], True))
        shuffle(round_)
        for form, is_control in round_:
            with form.ready():
                own_us = last_us if form.name == before else 0.0
                call = _settle(form, own_us, number, timings, measure) or measure(form)
            timings.add(form.name, call, number if is_control else None)
            before, last_us = form.name, call.wall_us
            progress.advance()
        timings.seconds = clock() - began
        rounds, seconds = number + 1 - len(timings.compiling_rounds), timings.seconds - timings.compiling_seconds
        reason = ranks.decided(stopping.reason(rounds, timings.settling_logs, number + 1, seconds))
        if reason:
            timings.stopped = reason
            return


def _settle(
    form: Form, own_us: float, number: int, timings: Timings, measure: Callable[[Form], CallTime]
) -> CallTime | None:
    """Calls the form untimed until it has run long enough by itself, of which the call before did `own_us`. A call that
    compiles is no preparation: it comes back, to be the timed one itself."""
    for _ in range(SETTLING_CALLS):
        if own_us >= SETTLING_US:
            return None
        call = measure(form)
        if call.compilations:
            return call
        timings.calls.setdefault(form.name, []).append((number, call.wall_us))
        own_us += call.wall_us
    return None


def time_one(form: Form, *, ranks: Ranks = ALONE) -> CallTime:
    """One synchronised call of the form, which is ready: what it took by the host's clock, and by the device's."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if form.device != "cpu" else []
    before_us = host_us() if events else 0.0
    if events:
        torch.cuda.reset_peak_memory_stats()
    noting: AbstractContextManager[list[Collection]]
    noting = collections_noted(time.perf_counter_ns) if events else nullcontext([])
    with watch_compilation() as watch, noting as collections:
        synchronize(form.device)
        start_ns = ranks.begin()
        if events:
            events[0].record()
        form.call()
        if events:
            events[1].record()
        synchronize(form.device)
        end_ns = time.perf_counter_ns()
    wall_us, own_us = ranks.took(start_ns, end_ns)
    around_us = (before_us + host_us()) / 2 if events else None
    device_us = events[0].elapsed_time(events[1]) * 1e3 if events else 0.0
    peak_bytes = torch.cuda.max_memory_allocated() if events else 0
    # Who made torch forget what it compiled has it compiled anew, unseen.
    compilations = watch.compilations or int(watch.lost)
    device_us, peak, compiled = ranks.most(device_us, peak_bytes, compilations)
    return CallTime(
        wall_us=wall_us,
        device_us=device_us if events else None,
        peak_bytes=int(peak) if events else None,
        compilations=int(compiled),
        own_us=own_us if ranks.size > 1 else None,
        own_peak_bytes=peak_bytes if events and ranks.size > 1 else None,
        host_us=around_us,
        collecting_us=collecting_us(collections, start_ns, end_ns) if events else None,
    )
