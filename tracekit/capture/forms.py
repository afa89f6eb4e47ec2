"""The two ways a workload is run: eager and compiled, switched on one model in place, so that both share weights and
every caller.

`torch.nn.Module.compile` keeps the compiled callable in `_compiled_call_impl` and `__call__` uses it when it is there.
That attribute is private to torch (2.1 to 2.15 at least); this is the only file that touches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from tracekit.capture import failures
from tracekit.capture.compilation import callable_of, check_compilers, recording_options, room_for
from tracekit.errors import TracekitError
from tracekit.model.option import CUDA_GRAPH_MODES
from tracekit.model.run import FormName, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget

CALL = "_compiled_call_impl"


@dataclass(frozen=True)
class Form:
    """One form of a workload. `call` runs it once and returns when its host code does, not the device. Calls are made
    inside `ready()`, which switches the form on: outside of what is timed, so that switching costs no form anything.
    `uncalled()` names what of the scope no call has come to yet."""

    name: FormName
    device: str
    call: Callable[[], object]
    ready: Callable[[], AbstractContextManager[None]] = nullcontext
    uncalled: Callable[[], tuple[str, ...]] = tuple


def eager_form(workload: BuiltWorkload) -> Form:
    """The workload as it was built."""
    return Form("eager", workload.settings.device, workload.call)


def compiled_form(workload: BuiltWorkload) -> Form:
    """The workload with its targets under torch.compile; nothing is compiled until it is first called. Raises
    TracekitError when this machine cannot compile."""
    settings = workload.settings
    check_compilers(settings.device)
    torch.compiler.reset()
    switches = tuple(Switch(target, compile_options(settings)) for target in workload.targets)
    room = room_for(workload.targets)

    @contextmanager
    def ready() -> Iterator[None]:
        with switched_on(switches), room(), failures.explained(settings):
            yield

    def uncalled() -> tuple[str, ...]:
        return tuple(switch.target.component for switch in switches if not switch.entered)

    return Form("compiled", settings.device, marked(workload.call, settings.mode), ready, uncalled)


def marked(call: Callable[[], object], mode: str) -> Callable[[], object]:
    """One call is one iteration: CUDA graphs may reuse the memory of the call before."""
    if mode not in CUDA_GRAPH_MODES:
        return call

    def one_step() -> object:
        torch.compiler.cudagraph_mark_step_begin()
        return call()

    return one_step


def compile_options(settings: Settings) -> dict[str, Any]:
    """The arguments of torch.compile for these settings."""
    options: dict[str, Any] = {"fullgraph": settings.fullgraph, "dynamic": settings.dynamic}
    if recording := recording_options(settings.device, settings.mode, settings.dynamic):
        return {**options, "options": recording}
    return options if settings.mode == "default" else {**options, "mode": settings.mode}


class Switch:
    """One compile target with its two callables. It starts off: eager. `entered` says whether any call has come to the
    compiled one: what nothing calls is never compiled, and torch does not say so."""

    def __init__(self, target: CompileTarget, options: dict[str, Any]) -> None:
        if not hasattr(torch.nn.Module, CALL):
            raise TracekitError(f"torch {torch.__version__} keeps compiled modules in a way tracekit does not know yet")
        self.target = target
        self.entered = False
        # `forward` is called through `__call__`, other methods by their name.
        self._attribute = CALL if target.method == "forward" else target.method
        call = callable_of(target.module) if self._attribute == CALL else getattr(target.module, target.method)
        self._compiled: Callable[..., Any] = torch.compile(call, **options)

    def on(self) -> None:
        """From now on the target runs compiled."""
        # Past nn.Module.__setattr__, which is for parameters and submodules.
        compiled = self._compiled if self.entered else self._first_call
        object.__setattr__(self.target.module, self._attribute, compiled)

    def _first_call(self, *arguments: Any, **options: Any) -> Any:
        # Once: from then on nothing stands between the caller and compiled code.
        self.entered = True
        self.on()
        return self._compiled(*arguments, **options)

    def off(self) -> None:
        """From now on the target runs eager."""
        if self._attribute in self.target.module.__dict__:
            object.__delattr__(self.target.module, self._attribute)


@contextmanager
def switched_on(switches: tuple[Switch, ...]) -> Iterator[None]:
    """The targets run compiled inside the block and eager after it, whatever happens."""
    for switch in switches:
        switch.on()
    try:
        yield
    finally:
        for switch in switches:
            switch.off()
