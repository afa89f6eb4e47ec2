"""What a program compiles: each callable that torch.compile returned, where, in which mode, and its calls.

Dynamo must not see any of it. So a call inside of compiled code goes straight on, and nothing of torch.nn.Module is
replaced, of which Dynamo keeps guards.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from tracekit.measure.compilation import is_of_torch
from tracekit.measure.source_location import is_torch, portable

#: Below these folders lie libraries, not programs.
OF_LIBRARIES = ("site-packages", "dist-packages")
#: So many tensors of a call tell its size.
MOST_SHAPES = 16


@dataclass(eq=False)
class Compiled:
    """A callable that torch.compile returned."""

    name: str
    place: str  #: FILE:LINE of the program that asked for it.
    mode: str
    by_library: bool
    parameters: int
    #: Calls that did not come from other compiled code.
    calls: int = 0
    #: `module.compile()` of one of torch.nn's own, at whose forward Dynamo does not begin.
    of_torch: bool = False
    _module: weakref.ref[nn.Module] | None = field(default=None, repr=False)

    @property
    def module(self) -> nn.Module | None:
        """None of a function, and of a module that the program has dropped."""
        return self._module() if self._module is not None else None

    @property
    def is_module(self) -> bool:
        return self._module is not None

    @property
    def label(self) -> str:
        """What it is told from others by: the blocks of a model that one line compiles are one."""
        return f"{self.name} ({self.place})"


Entered = Callable[[Compiled, tuple[Any, ...], dict[str, Any]], bool]
Left = Callable[[Compiled], None]


class Watch:
    """The callables that are compiled in this process, in the order they were asked for.

    `entered` and `left` hear of the outermost calls of each thread. Where `entered` has set the stance for one call,
    `restore` undoes it. `again` says, where a call raised, whether to call once more.
    """

    def __init__(
        self,
        entered: Entered,
        left: Left,
        again: Callable[[Compiled, Exception], bool],
        restore: Callable[[], None],
    ) -> None:
        self.found: list[Compiled] = []
        self._entered, self._left, self._again, self._restore = entered, left, again, restore
        self._depths = threading.local()
        self._modules: weakref.WeakKeyDictionary[nn.Module, Compiled] = weakref.WeakKeyDictionary()
        self._process = os.getpid()

    @property
    def is_inside(self) -> bool:
        """Whether this thread is in compiled code's call."""
        return bool(getattr(self._depths, "inside", False))

    def install(self) -> None:
        """From now on what torch.compile returns is watched."""
        compile_ = torch.compile

        @functools.wraps(compile_)
        def compiling(model: Any = None, *args: Any, **options: Any) -> Any:
            made = compile_(model, *args, **options)
            # Without a model it makes a decorator, which comes here again.
            if model is None or options.get("disable") or os.getpid() != self._process:
                return made
            return self._watched(model, made, str(options.get("mode") or "default"))

        torch.compile = compiling

    def _watched(self, model: Any, made: Any, mode: str) -> Any:
        owner = getattr(model, "__self__", None)
        module = model if isinstance(model, nn.Module) else owner if isinstance(owner, nn.Module) else None
        in_place = module is not None and module is not model and getattr(model, "__name__", "") == "_call_impl"
        place, by_library = _asked_at()
        found = Compiled(
            name=type(module).__name__ if module is not None else str(getattr(model, "__qualname__", model))[:200],
            place=place,
            mode=mode,
            # A model is the program's, whoever compiles it for it.
            by_library=by_library and module is None,
            parameters=sum(each.numel() for each in module.parameters()) if module is not None else 0,
            of_torch=in_place and module is not None and is_of_torch(module),
            _module=weakref.ref(module) if module is not None else None,
        )
        self.found.append(found)
        if made is not model and isinstance(made, nn.Module):
            self._modules[made] = found
            self._watch_modules(type(made))
            return made
        return self._counted(made, found)

    def _watch_modules(self, kind: type[nn.Module]) -> None:
        """Calls of what torch.compile makes of modules."""
        if "_tracekit_call" in vars(kind):
            return
        call = kind.__call__

        def called(this: nn.Module, *args: Any, **options: Any) -> Any:
            found = None if torch.compiler.is_compiling() else self._modules.get(this)
            if found is None:
                return call(this, *args, **options)
            return self._call(found, functools.partial(call, this), args, options)

        kind._tracekit_call = call  # type: ignore[attr-defined]
        kind.__call__ = called  # type: ignore[method-assign]

    def _counted(self, made: Callable[..., Any], found: Compiled) -> Callable[..., Any]:
        @functools.wraps(made)
        def called(*args: Any, **options: Any) -> Any:
            if torch.compiler.is_compiling():
                return made(*args, **options)
            return self._call(found, made, args, options)

        return called

    def _call(self, found: Compiled, call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if self.is_inside or os.getpid() != self._process:
            return call(*args, **options)
        found.calls += 1
        is_alone = self._entered(found, args, options)
        self._depths.inside = True
        again = False
        try:
            try:
                result = call(*args, **options)
            except Exception as error:
                again = self._again(found, error)
                if not again:
                    raise
            # Behind the error, whose traceback holds what the failed call has allocated.
            if again:
                torch.cuda.empty_cache()
                result = call(*args, **options)
        finally:
            self._depths.inside = False
            if is_alone:
                self._restore()
        self._left(found)
        return result


def shapes_of(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[int, ...], ...]:
    """The shapes of the tensors that a call is given, in lists and dicts too."""
    shapes: list[tuple[int, ...]] = []
    left = [*reversed(args), *reversed(options.values())]
    while left and len(shapes) < MOST_SHAPES:
        value = left.pop()
        if isinstance(value, torch.Tensor):
            shapes.append(tuple(value.shape))
        elif isinstance(value, list | tuple):
            left.extend(reversed(value))
        elif isinstance(value, dict):
            left.extend(reversed(value.values()))
    return tuple(shapes)


def _asked_at() -> tuple[str, bool]:
    """Where the program asked for it, and whether a library did."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (is_torch(frame.f_code.co_filename) or _is_ours(frame)):
        frame = frame.f_back
    if frame is None:
        return "", True
    path = frame.f_code.co_filename
    return f"{portable(path)}:{frame.f_lineno}", any(part in OF_LIBRARIES for part in Path(path).parts)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("tracekit", "functools", "contextlib")
