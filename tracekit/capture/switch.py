"""Compiled or eager, switched on one model in place, so that both forms share weights and every caller.

`torch.nn.Module.compile` keeps the compiled callable in `_compiled_call_impl` and `__call__` uses it when it is there.
That attribute is private to torch (2.1 to 2.15 at least); this is the only file that touches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tracekit.capture.compilation import entered
from tracekit.errors import TracekitError
from tracekit.model.workload import CompileTarget

CALL = "_compiled_call_impl"


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
        call = entered(target.module) if self._attribute == CALL else getattr(target.module, target.method)
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
