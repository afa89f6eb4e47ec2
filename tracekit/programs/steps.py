"""When a step of a program ends: at its optimizer, at a compiled call, at a span or a function of its own, or where it
says so."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch.autograd.profiler import record_function
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from tracekit.errors import TracekitError
from tracekit.measure.spans import announce_steps
from tracekit.programs.plan import Asked, Kind

#: Spans that the profiler itself makes, one a step.
PROFILER_STEP = "ProfilerStep"


#: Of two that may end steps, who counts: what the program says of itself before what is found.
PREFERENCE: dict[Kind, int] = {"call": 1, "optimizer": 2, "span": 3, "function": 3, "marked": 4}


#: Functions whose call only begins them.
NOT_AT_ONCE = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


class Enders:
    """Who ends the program's steps: an optimizer before a call, what the program says before both. Of several
    optimizers, or compiled callables, the one that comes last in a step; one that comes twice as often is the step."""

    def __init__(self) -> None:
        self._kind: Kind | None = None
        self._often: Counter[int] = Counter()
        self._last = 0

    def heard(self, kind: Kind, who: int, *, is_settled: bool) -> Literal["nothing", "a step", "the first step"]:
        """What is over by this. Once the program `is_settled` nobody new is the step, but by preference."""
        preferred = PREFERENCE[kind] - (PREFERENCE[self._kind] if self._kind else 0)
        if preferred < 0:
            return "nothing"
        if preferred > 0:
            self._often.clear()
        self._often[who] += 1
        is_new = self._often[who] == 1
        if preferred > 0 or (not is_settled and (is_new or self._often[who] > 2 * self._often[self._last])):
            self._kind, self._last = kind, who
            return "the first step"
        return "a step" if who == self._last else "nothing"


class Depth(threading.local):
    """How deep a thread is in calls of one function that calls itself, or in spans of one name."""

    def __init__(self) -> None:
        self._depth = 0

    def enter(self) -> bool:
        """Whether this is the outermost."""
        self._depth += 1
        return self._depth == 1

    def leave(self) -> bool:
        """Whether that was the outermost."""
        self._depth -= 1
        return self._depth == 0


class Steps:
    """Listens for what may end a step, and tells `ended` of each: its kind and who it was. Of spans and functions
    `begun` hears of the beginning, too."""

    def __init__(self, asked: Asked, begun: Callable[[], None], ended: Callable[[Kind, object], None]) -> None:
        self._asked, self._begun, self._ended = asked, begun, ended
        self._is_wrapped = self._is_heard = False
        self._inside = Depth()

    @property
    def say_their_beginning(self) -> bool:
        """Whether what is between two steps is none of either: torch's own spans follow each other."""
        return self._asked.kind == "function" or (self._asked.kind == "span" and not self._of_profiler)

    @property
    def _of_profiler(self) -> bool:
        return self._asked.name.startswith(PROFILER_STEP)

    def install(self) -> None:
        kind = self._asked.kind
        announce_steps(lambda: self._ended("marked", None))
        if kind in (None, "optimizer"):
            register_optimizer_step_post_hook(self._stepped)
        if kind == "span":
            self._watch_spans()

    def _stepped(self, optimizer: Optimizer, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        # Inside of compiled code nobody is to be asked anything.
        if not torch.compiler.is_compiling():
            self._ended("optimizer", optimizer)

    def _watch_spans(self) -> None:
        if self._of_profiler:
            step = torch.profiler.profile.step

            @functools.wraps(step)
            def stepped(this: torch.profiler.profile) -> None:
                step(this)
                self._ended("span", None)

            torch.profiler.profile.step = stepped  # type: ignore[assignment]
            return
        spans: Any = record_function
        enter, leave = spans.__enter__, spans.__exit__

        def entered(this: record_function) -> Any:
            # Before the span: the mark of a step holds it whole. Of those in each other the outermost is the step.
            if this.name == self._asked.name and not torch.compiler.is_compiling() and self._inside.enter():
                self._begun()
            return enter(this)

        def left(this: record_function, *error: Any) -> None:
            leave(this, *error)
            is_asked = this.name == self._asked.name and not torch.compiler.is_compiling()
            if is_asked and self._inside.leave() and error[:1] == (None,):
                self._ended("span", None)

        spans.__enter__, spans.__exit__ = entered, left

    def find_function(self) -> None:
        """Asked when the program calls what it compiled, for by then it has the function: from its next call on it is
        heard. Raises TracekitError where the program has none of that name."""
        if self._asked.kind != "function" or self._is_wrapped:
            return
        module, _, path = self._asked.name.partition(":")
        owner: Any = sys.modules.get(module)
        *parents, name = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent, None)
        kept = inspect.getattr_static(owner, name, None) if owner is not None else None
        function: Any = kept.__func__ if isinstance(kept, staticmethod | classmethod) else kept
        if not callable(function):
            raise TracekitError(
                f"--step function:{self._asked.name}: the program has no such function; pass MODULE:NAME"
            )

        if any(is_kind(function) for is_kind in NOT_AT_ONCE):
            raise TracekitError(f"--step function:{self._asked.name} returns before its work is done: it is no step")

        @functools.wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            if torch.compiler.is_compiling():
                return function(*args, **options)
            if not self._is_heard:
                # The call before, in which it was found, is over by now.
                self._is_heard = True
                self._ended("function", None)
            if self._inside.enter():
                self._begun()
            is_outermost = False
            try:
                result = function(*args, **options)
            finally:
                is_outermost = self._inside.leave()
            if is_outermost:
                self._ended("function", None)
            return result

        setattr(owner, name, type(kept)(called) if isinstance(kept, staticmethod | classmethod) else called)
        self._is_wrapped = True
