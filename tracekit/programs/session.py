"""The measuring of a program while it runs: its first steps, blocks of steps in both variants, recordings.

All of it happens at the ends of the program's steps. `_course()` is written as if it made the steps: it waits for each
by `yield`, and is sent what the step took.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Literal

import torch
from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.measure.compilation import CompilationWatch, cache_is_empty, watch_compilation
from tracekit.measure.device import synchronize
from tracekit.measure.diagnostics import DiagnosticLog
from tracekit.measure.failures import is_out_of_memory
from tracekit.measure.recording import cause
from tracekit.measure.timing import SETTLING_CALLS, SETTLING_US, Stopping
from tracekit.model.run import FormName, RecordingKind
from tracekit.model.timing import StoppingRule, StopReason
from tracekit.model.workload import CompileTarget
from tracekit.programs.compiled import Compiled, Watch, shapes_of
from tracekit.programs.recording import ProgramRecording
from tracekit.programs.steps import Asked, Enders, Kind, Steps
from tracekit.statistics.interval import Values

#: The program's own start is over when so many steps in a row compiled nothing.
QUIET_STEPS = 3
#: At the ends of a block alone the GPU is waited for. The first ones are short, for nobody knows how long the program
#: goes on; after so many rounds they are twice as long, until one lasts so long.
BLOCK_US, GROWING_ROUNDS = 50_000.0, 5
#: A step that takes so long is a block by itself.
LONG_STEP_US = 100_000.0
#: After so many rounds it is recorded, however wide the interval is: nobody knows how long the program goes on.
MOST_ROUNDS = 40
#: What stands between two steps is part of the loop; so many times the usual is evaluation, a checkpoint or the like.
INTERRUPTION = 10.0
INTERRUPTION_US = 10_000.0
#: The recordings of each variant: its kind, and how many steps are published.
RECORDINGS: tuple[tuple[RecordingKind, int], ...] = (("light", 2), ("rich", 2))
FORMS: tuple[FormName, ...] = ("eager", "compiled")
#: Something was compiled in a step, or the program did something else between two.
LeftOut = Literal["compiled", "interrupted"]


class Step(Struct, frozen=True):
    """A step that is over."""

    us: float
    before_us: float  #: Of it, before the first compiled call.
    compilations: int
    calls: tuple[str, ...]  #: The outermost compiled calls, by name.
    shapes: tuple[tuple[int, ...], ...]  #: Of what the first of them was given.

    @property
    def work(self) -> object:
        """What steps have in common that do the same."""
        return self.calls, self.shapes


class Block(Struct, frozen=True):
    """Steps of one variant that were timed together."""

    form: FormName
    us: float  #: A step.
    work: tuple[object, ...]
    left_out: LeftOut | None  #: Why it does not count.


class Found(Struct):
    """What was measured, as far as the program has come."""

    kind: Kind | None = None
    device: str = "cpu"
    first: list[Step] = []
    quiet: bool = False
    blocks: list[Block] = []
    steps_of_block: int = 0
    stopped: StopReason = "interrupted"
    seconds: float = 0.0
    recordings: dict[tuple[FormName, RecordingKind], ProgramRecording] = {}
    steps: int = 0
    cache_was_empty: bool | None = None
    done: bool = False
    #: Why measuring ended before it was done, for the program's own sake.
    off: str | None = None
    #: Why no eager step was made.
    no_eager: str | None = None
    no_recording: str | None = None
    before_us: list[float] = []


class Session:
    """Watches one program and measures it. `say` tells its user a line; `part` hears when something was measured,
    `measured` when all was."""

    def __init__(
        self,
        asked: Asked,
        rule: Callable[[str], StoppingRule],
        seed: int,
        name: str,
        folder: Path,
        say: Callable[[str], None],
        part: Callable[[], object],
        measured: Callable[[], None],
        *,
        eager: bool,
    ) -> None:
        self._rule, self._name, self._folder, self._say = rule, name, folder, say
        self._part, self._measured = part, measured
        self._shuffle = random.Random(seed).shuffle
        self._asked, self.found = asked, Found()
        self._forms = FORMS if eager else FORMS[1:]
        self.watch = Watch(self._entered, self._left, self._again)
        self._steps = Steps(asked, self._begun, self._ended)
        self._listening = ExitStack()
        self._events: CompilationWatch | None = None
        self.log = DiagnosticLog()
        self._call_of_log = self.log.counted(lambda: None)
        self._process, self._thread = os.getpid(), 0
        self.form: FormName = "compiled"
        self._course_made: Generator[None, Step, None] | None = None
        self._synchronizing = True
        self._enders = Enders()
        #: When the first step began, this one, and its first compiled call.
        self._first_ns = self._began_ns = self._first_call_ns = 0
        self._calls: list[str] = []
        self._shapes: tuple[tuple[int, ...], ...] = ()
        self._events_before = 0
        self._versions: list[int] | None = None
        self._oom: str | None = None
        self._varies = False

    def install(self) -> None:
        """From now on the program is watched; torch is there, and nothing of the program has run."""
        self.watch.install()
        self._steps.install()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """A fork is none of ours."""
        self.found.off = "forked"
        self._course_made = None

    # What the program does.

    @property
    def _is_deaf(self) -> bool:
        return self.found.done or self.found.off is not None or threading.get_ident() != self._thread

    def _entered(self, found: Compiled, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        if not self._thread and not found.by_library:
            self._begin()
        if self._is_deaf:
            return
        try:
            self._steps.find_function()
            if not self._calls:
                self._first_call_ns = time.perf_counter_ns()
                self._shapes = shapes_of(args, options)
            self._calls.append(found.name)
            if self.form == "eager" and self._versions is not None:
                self._versions = _versions(found)
        except Exception as error:  # noqa: BLE001 - whatever of ours fails, the program goes on.
            self._turn_off(cause(error))

    def _begin(self) -> None:
        """The first call of what the program compiles: its first step has begun."""
        self._thread = threading.get_ident()
        self.found.cache_was_empty = cache_is_empty()
        self._events = self._listening.enter_context(watch_compilation())
        self.log.targets = tuple(
            CompileTarget(each.name, each.module, "forward") for each in self.watch.found if each.module is not None
        )
        self._listening.enter_context(self.log.listening())
        self._course_made = self._course()
        next(self._course_made)
        self._call_of_log()
        self._first_ns = self._began_ns = time.perf_counter_ns()

    def _left(self, found: Compiled) -> None:
        if not self._is_deaf and self._asked.kind in (None, "call") and not found.by_library:
            self._ended("call", found)

    def _begun(self) -> None:
        """A step that says when it begins: what was before is none of it."""
        if self._is_deaf or self.watch.is_inside:
            return
        synchronize(self._device())
        self._began_ns = time.perf_counter_ns()

    def _ended(self, kind: Kind, who: object) -> None:
        if self._is_deaf or self._course_made is None:
            return
        if self.watch.is_inside:
            # Of a step that is compiled as a whole nobody may switch anything: its call is the step.
            return
        try:
            ends = self._enders.heard(kind, id(who), is_settled=self.found.quiet)
            if ends == "nothing":
                return
            if ends == "the first step" and self.found.steps:
                self._start_again()
            self.found.kind = kind
            self.found.steps += 1
            self._course_made.send(self._step())
            self._next_step()
        except StopIteration:
            self._over()
        except Exception as error:  # noqa: BLE001 - whatever of ours fails, the program goes on.
            self._turn_off(cause(error))

    def _start_again(self) -> None:
        """Another ends steps than those until now: all until here was one."""
        assert self._course_made is not None
        self._course_made.close()
        if self.form == "eager":
            self._stance("compiled")
        self.found = Found(cache_was_empty=self.found.cache_was_empty)
        self._course_made = self._course()
        next(self._course_made)
        self._began_ns, self._events_before = self._first_ns, 0

    def _step(self) -> Step:
        assert self._events is not None
        if self._synchronizing:
            synchronize(self._device())
        now, calls = time.perf_counter_ns(), tuple(self._calls)
        before_us = (self._first_call_ns - self._began_ns) / 1e3 if calls else 0.0
        events = self._events.compilations - self._events_before
        return Step((now - self._began_ns) / 1e3, max(before_us, 0.0), events, calls, self._shapes)

    def _next_step(self) -> None:
        assert self._events is not None
        self._calls, self._shapes, self._events_before = [], (), self._events.compilations
        self._call_of_log()
        self._began_ns = time.perf_counter_ns()

    def _device(self) -> str:
        return "cuda" if has_cuda() else "cpu"

    # What is done in its steps.

    def _course(self) -> Generator[None, Step, None]:
        found = self.found
        steps: list[Step] = []
        quiet = 0
        self._synchronizing = True
        while quiet < QUIET_STEPS:
            steps.append((yield))
            found.first = steps
            quiet = 0 if steps[-1].compilations else quiet + 1
        found.quiet, found.device = True, self._device()
        usual_us = median(step.us for step in steps[-QUIET_STEPS:])
        found.before_us = [step.before_us for step in steps[-QUIET_STEPS:]]
        # Of steps that differ a block of several has no partner.
        self._varies = len({step.work for step in steps[-QUIET_STEPS:]}) > 1
        found.steps_of_block = 1 if self._varies or usual_us > LONG_STEP_US else 2
        self._say(f"nothing was compiled in steps {len(steps) - QUIET_STEPS + 1} to {len(steps)}: measuring")
        self._part()
        yield from self._rounds()
        for form in self._forms:
            yield from self._switch(form)
            for kind, count in RECORDINGS:
                yield from self._record(form, kind, count)
        self._stance("compiled")

    def _rounds(self) -> Generator[None, Step, None]:
        found, rule = self.found, self._rule(self.found.device)
        if not rule.budget_seconds:
            return
        stopping, began = Stopping(rule, lambda _text: None), time.monotonic()
        reason: StopReason | None = None
        rounds = 0
        while reason is None:
            order = list(self._forms)
            self._shuffle(order)
            for form in order:
                yield from self._switch(form)
                if self.found.no_eager:
                    return
                found.blocks.append((yield from self._block(form)))
            rounds += 1
            long_enough = median(block.us for block in found.blocks) * found.steps_of_block >= BLOCK_US
            if rounds % GROWING_ROUNDS == 0 and not self._varies and not long_enough:
                found.steps_of_block *= 2
            found.seconds = time.monotonic() - began
            reason = stopping.reason(len(paired(found.blocks)), self._logs, rounds, found.seconds)
            reason = reason or ("most rounds" if rounds >= MOST_ROUNDS else None)
            found.stopped = reason or "interrupted"

    def _logs(self) -> Values:
        import numpy as np

        pairs = paired(self.found.blocks)
        if len(self._forms) == 1:
            return np.log([block.us for block in self.found.blocks if block.left_out is None])
        return np.log([eager.us / compiled.us for eager, compiled in pairs])

    def _switch(self, form: FormName) -> Generator[None, Step, None]:
        """The steps after it find caches and guards as the variant's own steps leave them."""
        is_first = form == "eager" and not any(block.form == "eager" for block in self.found.blocks)
        if form != self.form:
            self._stance(form)
        # Only where the step is not timed: it costs a look at every parameter.
        self._versions = [] if is_first else None
        self._synchronizing = False
        settled_us = 0.0
        for number in range(SETTLING_CALLS):
            step = yield
            settled_us += step.us
            if self._oom:
                self.found.no_eager = self._oom
                return
            # The very first eager step makes what later ones find.
            if settled_us >= SETTLING_US and number >= is_first:
                break
        self._versions = None

    def _block(self, form: FormName) -> Generator[None, Step, Block]:
        count, steps = self.found.steps_of_block, []
        synchronize(self.found.device)
        self._began_ns = time.perf_counter_ns()
        whole = self._asked.kind in ("span", "function")
        for number in range(count):
            self._synchronizing = whole or number == count - 1
            steps.append((yield))
        usual_us = median(self.found.before_us)
        pause_us = max(INTERRUPTION * usual_us, usual_us + INTERRUPTION_US)
        left_out: LeftOut | None = None
        if any(step.compilations for step in steps):
            left_out = "compiled"
        elif any(step.before_us > pause_us for step in steps):
            left_out = "interrupted"
        self.found.before_us += [step.before_us for step in steps]
        return Block(form, sum(step.us for step in steps) / count, tuple(step.work for step in steps), left_out)

    def _record(self, form: FormName, kind: RecordingKind, count: int) -> Generator[None, Step, None]:
        if self.found.no_recording:
            return
        recording = ProgramRecording(form, kind, self.found.device)
        self._synchronizing = True
        try:
            with recording.session():
                yield from recording.steps(count)
            self._say(f"writing the recording of {form} ({kind})")
            recording.write(self._folder, self._name, None)
        except TracekitError as error:
            self.found.no_recording = str(error)
            return
        self.found.recordings[form, kind] = recording
        self._part()
        # A span that was open when a session ended, as an optimizer's is here, must be over before the next begins:
        # torch would write its end into the memory of the session that is gone.
        self._synchronizing = False
        yield

    def _stance(self, form: FormName) -> None:
        torch.compiler.set_stance("force_eager" if form == "eager" else "default")
        self.form = form

    def _again(self, found: Compiled, error: Exception) -> bool:
        """Whether to call once more what raised: out of memory in eager code, where nothing was changed yet."""
        if self._is_deaf or self.form != "eager" or not is_out_of_memory(error):
            return False
        before, self._oom = self._versions, f"out of memory in eager {found.name}"
        self._stance("compiled")
        torch.cuda.empty_cache()
        return bool(before) and before == _versions(found)

    def _over(self) -> None:
        self.found.done = True
        self._listening.close()
        self._say(f"measured in {self.found.steps} steps; the program goes on compiled")
        self._measured()

    def _turn_off(self, why: str) -> None:
        """Nothing more is measured."""
        self.found.off = why
        if self._course_made is not None:
            self._course_made.close()
        if self.form == "eager":
            self._stance("compiled")
        self._say(f"measuring ended: {why}")

    def close(self) -> None:
        """The program is over."""
        if self._course_made is not None and not self.found.done and threading.get_ident() == self._thread:
            self._course_made.close()
        self._listening.close()

    @property
    def events(self) -> CompilationWatch | None:
        """What was compiled; None where nothing was called."""
        return self._events


def paired(blocks: list[Block]) -> list[tuple[Block, Block]]:
    """Eager and compiled blocks of the same work, in the order they were measured."""
    left: dict[tuple[FormName, object], list[Block]] = {}
    pairs = []
    for block in blocks:
        if block.left_out:
            continue
        other: FormName = "compiled" if block.form == "eager" else "eager"
        waiting = left.get((other, block.work))
        if waiting:
            partner = waiting.pop(0)
            pairs.append((block, partner) if block.form == "eager" else (partner, block))
        else:
            left.setdefault((block.form, block.work), []).append(block)
    return pairs


def has_cuda() -> bool:
    """Whether the program uses a GPU by now: to ask one begins to use it."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _versions(found: Compiled) -> list[int]:
    """Of all tensors of a module how often each was changed, and where torch's random numbers stand. Nothing of a
    function: what it changes nobody knows."""
    if found.module is None:
        return []
    tensors = [*found.module.parameters(), *found.module.buffers()]
    states = [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if has_cuda() else [])]
    return [*(each._version for each in tensors), *(hash(each.numpy().tobytes()) for each in states)]
