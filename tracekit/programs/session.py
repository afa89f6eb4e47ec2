"""Listens to one program, and hands each of its steps to the course that measures it. Whatever of ours fails ends the
measuring, never the program."""

from __future__ import annotations

import functools
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from tracekit.measure.compilation import (
    CompilationWatch,
    CompileClock,
    cache_is_empty,
    compile_clock,
    watch_compilation,
)
from tracekit.measure.device import synchronize
from tracekit.measure.diagnostics import DiagnosticLog
from tracekit.measure.failures import is_out_of_memory
from tracekit.measure.recording import cause
from tracekit.model.run import FormName, RecordingKind
from tracekit.model.timing import StoppingRule
from tracekit.programs.compiled import Compiled, Watch, shapes_of
from tracekit.programs.course import FORMS, Course, Found, Step, Waiting
from tracekit.programs.plan import Asked, Kind
from tracekit.programs.recording import ProgramRecording
from tracekit.programs.steps import Enders, Steps
from tracekit.programs.together import Together

#: Of a step the shapes of so many calls are kept.
MOST_CALLS = 64
#: So many times as many calls as a step has had, and it is no step; so many after another, and eager ones never end.
CALLS_WITHOUT_END = 5
MOST_STRAYS = 2


class Session:
    """One program. `rule` says when to stop on a device, `say` tells its user a line, `part` hears when something was
    measured, `recorded` when the run is whole but for what each callable brings, `measured` when all is over.
    Recordings go into `folder`."""

    def __init__(
        self,
        asked: Asked,
        rule: Callable[[str], StoppingRule],
        seed: int,
        name: str,
        folder: Path,
        say: Callable[[str], None],
        part: Callable[[], object],
        recorded: Callable[[], object],
        measured: Callable[[], None],
        *,
        eager: bool,
        spends_budget: bool,
    ) -> None:
        self._asked, self._rule, self._seed, self._name = asked, rule, seed, name
        self._folder, self._say, self._part, self._measured = folder, say, part, measured
        self._recorded, self._spends_budget = recorded, spends_budget
        self._forms = FORMS if eager else FORMS[1:]
        self.found, self.ranks = Found(), Together()
        self._set_stance: Callable[..., object] = torch.compiler.set_stance
        self.watch = Watch(self._entered, self._left, self._again, self._set_variant)
        self._steps, self._enders = Steps(asked, self._begun, self._ended), Enders()
        self.log = DiagnosticLog()
        self._call_of_log = self.log.counted(lambda: None)
        self._listening = ExitStack()
        #: What was compiled since the first call; None before it.
        self.events: CompilationWatch | None = None
        self._process, self._thread = os.getpid(), 0
        #: The variant of the steps that are made now, and the callable that alone is eager in them.
        self.form: FormName = "compiled"
        self._alone: str | None = None
        self._course: Course | None = None
        self._waiting: Waiting | None = None
        #: When the first step began, this one, and its first compiled call.
        self._first_ns = self._began_ns = self._first_call_ns = 0
        self._calls: list[str] = []
        self._shapes: list[tuple[tuple[int, ...], ...]] = []
        self._clock: CompileClock | None = None
        #: How often compiled code was called in a step at most, and how long compiling had taken before this one.
        self._most_calls = self._compiling_before_ns = 0
        self._events_before = 0
        self._versions: list[int] = []
        #: Whether the program raised in a step that was made eager.
        self.raised_in_eager = False
        #: Whether this step was to be eager and is compiled since, and how many before it were so, one after another.
        self._is_astray, self._strays = False, 0

    def install(self) -> None:
        """From now on the program is watched; torch is there, and nothing of the program has run."""
        self.watch.install()
        self._steps.install()
        self.ranks.install()
        self._watch_stance()

    def close(self) -> None:
        """The program is over."""
        try:
            if self._waiting is not None and threading.get_ident() == self._thread:
                self._waiting.close()
            self._listening.close()
        finally:
            self.ranks.close()

    @property
    def compiling_us(self) -> float:
        """How long compiling has taken since the first call, in later steps too."""
        return self._clock.ns / 1e3 if self._clock is not None else 0.0

    @property
    def is_in_eager_step(self) -> bool:
        """Whether this step, or the one that has just ended, was made eager."""
        return self.form == "eager" and not self._is_astray

    @property
    def _is_deaf(self) -> bool:
        if self.found.done or self.found.off is not None:
            return True
        # A fork is none of ours, and steps are of one thread.
        return threading.get_ident() != self._thread or os.getpid() != self._process

    def _entered(self, found: Compiled, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
        """Whether the stance was set for this call alone."""
        try:
            if not self._thread and not found.by_library:
                self._begin()
            if self._is_deaf:
                return False
            self._steps.find_function()
            if not self._calls:
                self._first_call_ns = time.perf_counter_ns()
            if len(self._shapes) < MOST_CALLS:
                self._shapes.append(shapes_of(args, options))
            self._calls.append(found.label)
            if self.form == "eager" and len(self._calls) > CALLS_WITHOUT_END * self._most_calls:
                self._stray()
            if self._course is not None and self._course.is_first_eager:
                self._versions = _versions(found)
            if self._alone == found.label and not self._is_astray:
                # In compiled blocks too, so that both take the time of switching.
                self._set_stance("force_eager" if self.form == "eager" else "default")
                return True
        except Exception as error:  # noqa: BLE001 - whatever of ours fails, the program goes on.
            self._turn_off(cause(error))
        return False

    def _stray(self) -> None:
        """An eager step does not end: the program evaluates, its loop is over, or it raises. The rest is compiled."""
        if self._is_astray:
            return
        self._is_astray, self._strays = True, self._strays + 1
        self._set_stance("default")
        if self._strays > MOST_STRAYS:
            self._turn_off("eager steps do not come to their end")

    def _begin(self) -> None:
        """The first call of what the program compiles: its first step has begun."""
        self._thread = threading.get_ident()
        self.ranks.check()
        self.found.cache_was_empty = cache_is_empty()
        self.events = self._listening.enter_context(watch_compilation())
        self._clock = self._listening.enter_context(compile_clock())
        self._listening.enter_context(self.log.listening())
        self._call_of_log()
        self._start()
        self._first_ns = self._began_ns = time.perf_counter_ns()

    def _start(self) -> None:
        self._course = Course(
            self.found,
            self._forms,
            self._rule,
            self._seed,
            self.ranks,
            self._device,
            self._is_own,
            self._switch,
            self._write,
            self._part,
            self._recorded,
            says_its_beginning=self._steps.say_their_beginning,
            spends_budget=self._spends_budget,
        )
        self._waiting = self._course.run()
        next(self._waiting)

    def _start_again(self) -> None:
        """Another ends steps than those until now: all until here was one."""
        if self._waiting is not None:
            self._waiting.close()
        self._switch("compiled", None)
        self.found = Found(cache_was_empty=self.found.cache_was_empty)
        self._start()
        self._began_ns, self._events_before, self._compiling_before_ns = self._first_ns, 0, 0

    def _left(self, found: Compiled) -> None:
        if not self._is_deaf and self._asked.kind in (None, "call") and not found.by_library:
            self._ended("call", found)

    def _begun(self) -> None:
        """A step that says when it begins: what was before is none of it."""
        # Where the program says when a step ends, it begins where the last one did.
        if self._is_deaf or self.watch.is_inside or self.events is None or self.found.kind == "marked":
            return
        try:
            synchronize(self._device())
            if self.found.kind in ("span", "function"):
                self._forget_calls()
            if self._course is not None and self._course.recording is not None:
                self._course.recording.begin_step()
            self._began_ns = time.perf_counter_ns()
        except Exception as error:  # noqa: BLE001 - whatever of ours fails, the program goes on.
            self._turn_off(cause(error))

    def _ended(self, kind: Kind, who: object) -> None:
        # Of a step that is compiled as a whole nobody may switch anything inside: its call is the step.
        if self._is_deaf or self._waiting is None or self.watch.is_inside:
            return
        try:
            ends = self._enders.heard(kind, id(who), is_settled=self.found.quiet)
            if ends == "nothing":
                return
            if ends == "the first step" and self.found.steps:
                self._start_again()
            self.found.kind = kind
            self.found.steps += 1
            step = self._step()
            if self.found.quiet and step.compilations and self.form == "compiled":
                self.found.late_us.append(step.us)
            self._waiting.send(step)
            self._forget_calls()
            self._call_of_log()
            self._began_ns = time.perf_counter_ns()
        except StopIteration:
            self._come_to_its_end()
        except Exception as error:  # noqa: BLE001 - whatever of ours fails, the program goes on.
            self._turn_off(cause(error))

    def _come_to_its_end(self) -> None:
        self.found.done = True
        try:
            self._listening.close()
            self._measured()
        except Exception as error:  # noqa: BLE001 - whatever of ours fails, the program goes on.
            self._say(f"what was measured could not be written: {cause(error)}")

    def _forget_calls(self) -> None:
        """What comes is of the next step."""
        assert self.events is not None and self._clock is not None
        if not self._is_astray:
            self._most_calls, self._strays = max(self._most_calls, len(self._calls)), 0
        self._calls, self._shapes, self._is_astray = [], [], False
        self._events_before, self._compiling_before_ns = self.events.compilations, self._clock.ns

    def _step(self) -> Step:
        assert self.events is not None and self._clock is not None and self._course is not None
        if self._course.synchronizing:
            synchronize(self._device())
        us = (time.perf_counter_ns() - self._began_ns) / 1e3
        before_us = (self._first_call_ns - self._began_ns) / 1e3 if self._calls else 0.0
        events = self.events.compilations - self._events_before
        if self._is_astray:
            self._set_variant()
        compiling_us = (self._clock.ns - self._compiling_before_ns) / 1e3
        return Step(
            us, max(before_us, 0.0), events, tuple(self._calls), tuple(self._shapes), compiling_us, self._is_astray
        )

    def _is_own(self, label: str) -> bool:
        return any(each.label == label and not each.by_library for each in self.watch.found)

    def _device(self) -> str:
        return "cuda" if _has_cuda() else "cpu"

    def _switch(self, form: FormName, alone: str | None) -> None:
        if (form, alone) != (self.form, self._alone):
            self.form, self._alone = form, alone
            self._set_variant()

    def _set_variant(self) -> None:
        self._set_stance("force_eager" if self.form == "eager" and self._alone is None else "default")

    def _watch_stance(self) -> None:
        """A program that sets torch's stance itself switches what we would."""

        @functools.wraps(self._set_stance)
        def set_stance(*args: Any, **options: Any) -> Any:
            if not self.found.done and self.found.off is None:
                self._turn_off("the program sets torch's stance itself")
            return self._set_stance(*args, **options)

        torch.compiler.set_stance = set_stance

    def _write(self, recording: ProgramRecording, form: FormName, kind: RecordingKind) -> None:
        """The first rank's into the run; of several ranks the full traces of each variant into a folder of theirs."""
        place = self._folder / f"{form}-{kind}.json.gz"
        of_ranks = self._folder / f"{form}-ranks" / f"rank{self.ranks.rank}.json.gz"
        if not self.ranks.rank:
            self._say(f"writing the recording of {form} ({kind})")
            recording.write(place, self._name)
        if kind == "rich" and self.ranks.rank:
            recording.write(of_ranks, self._name)
        elif kind == "rich" and self.ranks.size > 1:
            of_ranks.parent.mkdir(exist_ok=True)
            shutil.copyfile(place, of_ranks)

    def _again(self, found: Compiled, error: Exception) -> bool:
        """Whether to call once more what raised: out of memory in eager code, where nothing was changed yet."""
        if self._is_deaf or self.form != "eager" or self._course is None:
            return False
        self.raised_in_eager = True
        if not is_out_of_memory(error):
            return False
        eager = found.name if self._alone is None else self._alone
        self._course.against_eager = f"out of memory in eager {eager}"
        self._switch("compiled", None)
        return self._course.is_first_eager and bool(self._versions) and self._versions == _versions(found)

    def _turn_off(self, why: str) -> None:
        """Nothing more is measured."""
        self.found.off = why
        if self._waiting is not None and threading.get_ident() == self._thread:
            self._waiting.close()
        self._switch("compiled", None)
        self._listening.close()
        self._say(f"measuring ended: {why}")


def _has_cuda() -> bool:
    """Whether the program uses a GPU by now: to ask one begins to use it."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _versions(found: Compiled) -> list[int]:
    """Of all tensors of a module how often each was changed, and where torch's random numbers stand. Nothing of a
    function, and of tensors of inference, which nobody counts."""
    module = found.module
    tensors = [*module.parameters(), *module.buffers()] if module is not None else []
    if not tensors or any(each.is_inference() for each in tensors):
        return []
    states = [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if _has_cuda() else [])]
    return [*(each._version for each in tensors), *(hash(each.numpy().tobytes()) for each in states)]
