"""Calls that change their own model, as training steps do: each of them can begin with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import torch
from torch import nn

from tracekit.capture.device import synchronize
from tracekit.model.workload import BuiltWorkload


def keep_weights(workload: BuiltWorkload) -> Callable[[], None]:
    """What puts every parameter and buffer back as it is when this returns: nothing at all, unless calls change some.

    One eager call of a model of the user's own tells; tracekit's do not learn. The copies lie on the CPU. What an
    optimizer keeps for itself is not put back.
    """
    if workload.settings.own is None:
        return _nothing
    tensors = _tensors(workload)
    before = [_state(tensor) for tensor in tensors]
    workload.call()
    synchronize(workload.settings.device)
    changed = [tensor for tensor, state in zip(tensors, before, strict=True) if _has_changed(tensor, state)]
    if not changed:
        return _nothing
    kept = [tensor.detach().to("cpu", copy=True) for tensor in changed]

    def put_back() -> None:
        with torch.no_grad():
            for tensor, value in zip(changed, kept, strict=True):
                tensor.copy_(value)

    return put_back


def _state(tensor: torch.Tensor) -> tuple[int, torch.Tensor | None]:
    """How often torch says that it was written to; of a buffer, which is small, its values too: batch norm writes its
    averages without a word."""
    return tensor._version, None if isinstance(tensor, nn.Parameter) else tensor.detach().clone()


def _has_changed(tensor: torch.Tensor, before: tuple[int, torch.Tensor | None]) -> bool:
    version, value = before
    return tensor._version != version or (value is not None and not torch.equal(tensor, value))


def _nothing() -> None: ...


def _tensors(workload: BuiltWorkload) -> list[torch.Tensor]:
    """Every parameter and buffer, once."""
    found = (each for _name, module in workload.modules for each in chain(module.parameters(), module.buffers()))
    return list({id(each): each for each in found}.values())
