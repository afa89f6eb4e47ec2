"""How much more memory does a call need than the one that the list states, which is of batch 1 and no chosen sizes?"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from tracekit.model.dtypes import ELEMENT_BYTES
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.workloads.registry import all_workloads, load_builder
from tracekit.workloads.rehearsal import rehearse
from tracekit.workloads.scopes import build_nowhere
from tracekit.workloads.sizes import GIB

#: What memory is counted in, as the list does.
COUNTED = "bfloat16"


class _CaughtError(Exception):
    """Ends a call where its model is entered."""


def growth_gib(info: WorkloadInfo, request: Request, size: str) -> float | None:
    """An estimate, in bfloat16, of what the request's batch and image sizes need beyond the size's stated memory; None
    where nobody knows. Activations and inputs grow with the batch: one call of batch 1 is played through without
    memory, or, where that cannot be, a measurement is scaled by the pixels."""
    if info not in all_workloads():
        return None
    if request.batch_size == 1 and request.height is None and request.width is None:
        return 0.0
    if info.megapixel_gib is not None:
        side: int = importlib.import_module(info.module).ARCHITECTURES[size].pixels
        pixels = request.batch_size * (request.height or side) * (request.width or side)
        return info.megapixel_gib * (pixels - side**2) / 1e6
    each = _bytes_of_one(info, request, size)
    return None if each is None else (request.batch_size - 1) * each / GIB


def _bytes_of_one(info: WorkloadInfo, request: Request, size: str) -> int | None:
    """What one input of a call takes with its activations, in bfloat16; a model that runs in another type is played
    through in that one."""
    dtype = info.dtype or COUNTED
    one = replace(request, batch_size=1, dtype=dtype, pretrained=None)
    workload = build_nowhere(load_builder(info), one, size)
    (_name, model), *others = workload.modules
    caught: dict[str, Any] = {}

    def catch(_module: Any, _args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # Calls of the list name all that they pass.
        caught.update(kwargs)
        raise _CaughtError

    hook = model.register_forward_pre_hook(catch, with_kwargs=True)
    try:
        workload.call()
    except _CaughtError:
        pass
    finally:
        hook.remove()
    rehearsal = rehearse(model.eval(), caught)
    if others or rehearsal.activations_bytes is None:
        return None
    inputs = (each for each in tree_leaves(caught) if isinstance(each, torch.Tensor))
    found = rehearsal.activations_bytes + sum(each.nbytes for each in inputs)
    return found * ELEMENT_BYTES[COUNTED] // ELEMENT_BYTES[dtype]
