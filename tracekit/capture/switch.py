"""Compiled or eager, switched on one model in place, so that both forms share weights and every caller.

`torch.nn.Module.compile` keeps the compiled callable in `_compiled_call_impl` and `__call__` uses it when it is there.
That attribute and `_call_impl` are private to torch (2.1 to 2.15 at least); this is the only file that touches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tracekit.capture.whereabouts import is_torch
from tracekit.errors import TracekitError
from tracekit.model.workload import CompileTarget

CALL = "_compiled_call_impl"


def _is_torchs_own(module: nn.Module) -> bool:
    code = getattr(type(module).forward, "__code__", None)
    return code is not None and is_torch(code.co_filename)


def _calling(module: nn.Module) -> Callable[..., Any]:
    """A call of one of torch's own modules (nn.Sequential), as `torch.compile(module)` has it: Dynamo passes over
    frames of torch's own files, so that of `module.compile()` only what lies inside would be compiled, or nothing."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return module._call_impl(*args, **kwargs)

    return call


class Switch:
    """One compile target with its two callables. It starts off: eager."""

    def __init__(self, target: CompileTarget, options: dict[str, Any]) -> None:
        if not hasattr(torch.nn.Module, CALL):
            raise TracekitError(f"torch {torch.__version__} keeps compiled modules in a way tracekit does not know yet")
        self.target = target
        # `forward` is called through `__call__`, other methods by their name.
        self._attribute = CALL if target.method == "forward" else target.method
        self._compiled = self._compile(options)

    def _compile(self, options: dict[str, Any]) -> Callable[..., Any]:
        module = self.target.module
        if self._attribute == CALL and _is_torchs_own(module):
            return torch.compile(_calling(module), **options)
        if self._attribute == CALL:
            module.compile(**options)
            compiled: Callable[..., Any] = getattr(module, CALL)
            setattr(module, CALL, None)
            return compiled
        return torch.compile(getattr(module, self.target.method), **options)

    def on(self) -> None:
        """From now on the target runs compiled."""
        # Past nn.Module.__setattr__, which is for parameters and submodules.
        object.__setattr__(self.target.module, self._attribute, self._compiled)

    def off(self) -> None:
        """From now on the target runs eager."""
        if self._attribute in self.target.module.__dict__:
            object.__delattr__(self.target.module, self._attribute)
