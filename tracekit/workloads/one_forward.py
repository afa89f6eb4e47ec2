"""A model whose call is one forward over fixed inputs: what all of these workloads do alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request, WorkloadInfo
from tracekit.workloads.pretrained import load_pretrained
from tracekit.workloads.settings import fill_in
from tracekit.workloads.weights import random_weights


@dataclass(frozen=True, slots=True)
class OneForward:
    """What differs between these workloads. `make` builds the model of a size. `inputs` draws the arguments of a
    forward for a size, so many at once and a seed, on the CPU, the same for every device; floats among them are cast
    to the run's dtype. `does` says for each size, in the report's notes, what a call does; `outputs` names what it
    gives."""

    info: WorkloadInfo
    kind: Any
    make: Callable[[str], Any]
    inputs: Callable[[str, int, int], dict[str, Any]]
    does: Mapping[str, str]
    outputs: tuple[str, ...] = ("logits",)
    gpu_iterations: int = 100


def build_one_forward(spec: OneForward, request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The model and its inputs on `device`, ready to be called. `size` is already chosen.

    Raises TracekitError for pretrained weights that cannot be had or are another model's.
    """
    settings = fill_in(spec.info, request, size, device, gpu_iterations=spec.gpu_iterations)
    dtype: torch.dtype = getattr(torch, settings.dtype)
    if request.pretrained:
        progress.detail(f"loading {request.pretrained}")
        model = _load(spec.kind, request.pretrained, dtype).to(device)
    else:
        with random_weights(dtype, device, request.seed):
            model = spec.make(size)
        # What a model makes of numbers of its own is on the CPU still.
        model = model.to(device)
    model.requires_grad_(False).eval()
    inputs = placed_on(spec.inputs(size, settings.batch_size, settings.seed), device, dtype)
    return BuiltWorkload(
        info=spec.info,
        settings=settings,
        call=_make_call(model, inputs, spec.outputs),
        targets=(CompileTarget("model", model),),
        components=(Component("model", sum(p.numel() for p in model.parameters()), compiled=True),),
        notes=_notes(spec, settings, size),
        modules=(("model", model),),
    )


def _load(kind: Any, source: str, dtype: torch.dtype) -> Any:
    # Asked for a model by name, transformers would fill one with random weights from another model's folder.
    found = load_pretrained(AutoConfig, source, None).model_type
    wanted = kind.config_class.model_type
    if found != wanted:
        raise TracekitError(f"{source} holds a model of type {found}, which is no {wanted}: pass one's to --pretrained")
    return load_pretrained(kind, source, dtype)


def placed_on(inputs: dict[str, Any], device: str, dtype: torch.dtype) -> dict[str, Any]:
    """The arguments on the device, floats among them in `dtype`."""

    def placed(value: Any) -> Any:
        if isinstance(value, dict):
            return placed_on(value, device, dtype)
        return value.to(device, dtype) if value.is_floating_point() else value.to(device)

    return {name: placed(value) for name, value in inputs.items()}


def _make_call(model: Any, inputs: dict[str, Any], outputs: tuple[str, ...]) -> Callable[[], object]:
    def call() -> object:
        with torch.no_grad():
            found = model(**inputs)
        return tuple(getattr(found, name) for name in outputs)

    return call


def _notes(spec: OneForward, settings: Settings, size: str) -> tuple[str, ...]:
    call = (
        f"One call {spec.does[size]}, {settings.batch_size} of them, made here and already on the device, and ends with"
        f" {' and '.join(spec.outputs)} there."
    )
    if settings.pretrained:
        return (call,)
    return (call, "Weights are random: the output means nothing, the work is the model's own.")
