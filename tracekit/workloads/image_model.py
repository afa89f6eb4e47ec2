"""A model of transformers that looks at pictures, in one forward: what all of these workloads do alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AutoConfig

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request, WorkloadInfo
from tracekit.workloads.pictures import draw_images
from tracekit.workloads.pretrained import load_pretrained
from tracekit.workloads.settings import fill_in
from tracekit.workloads.weights import random_weights


def _no_more_inputs(count: int, model: Any) -> dict[str, torch.Tensor]:
    return {}


@dataclass(frozen=True, slots=True)
class ImageModel:
    """What differs between these workloads. `make` builds the model of a size; `sizes` are heights and widths in
    pixels. `does` says in the notes what a call does to images, `outputs` names what it gives. `other_inputs` are those
    besides images, for so many of them."""

    info: WorkloadInfo
    kind: Any
    make: Callable[[str], Any]
    sizes: Mapping[str, tuple[int, int]]
    does: str
    outputs: tuple[str, ...] = ("logits",)
    other_inputs: Callable[[int, Any], dict[str, torch.Tensor]] = field(default=_no_more_inputs)


def build_image_model(spec: ImageModel, request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The model and its images on `device`, ready to be called. `size` is already chosen.

    Raises TracekitError for pretrained weights that cannot be had or are another model's.
    """
    # A call takes milliseconds.
    settings = fill_in(spec.info, request, size, device, gpu_iterations=100)
    dtype: torch.dtype = getattr(torch, settings.dtype)
    if request.pretrained:
        progress.detail(f"loading {request.pretrained}")
        model = _load(spec.kind, request.pretrained, dtype).to(device)
    else:
        with random_weights(dtype, device, request.seed):
            model = spec.make(size)
    model.requires_grad_(False).eval()
    height, width = spec.sizes[size]
    images = draw_images(settings.batch_size, height, width, settings.seed).to(device, dtype)
    inputs = {name: each.to(device) for name, each in spec.other_inputs(settings.batch_size, model).items()}
    return BuiltWorkload(
        info=spec.info,
        settings=settings,
        call=_make_call(model, {"pixel_values": images, **inputs}, spec.outputs),
        targets=(CompileTarget("model", model),),
        components=(Component("model", sum(p.numel() for p in model.parameters()), compiled=True),),
        notes=_notes(spec, settings, height, width),
        modules=(("model", model),),
    )


def _load(kind: Any, source: str, dtype: torch.dtype) -> Any:
    # Asked for a model by name, transformers would fill one with random weights from another model's folder.
    found = load_pretrained(AutoConfig, source, None).model_type
    if found != kind.config_class.model_type:
        raise TracekitError(f"{source} holds a {found}, which is no {kind.config_class.model_type}: pass one's weights")
    return load_pretrained(kind, source, dtype)


def _make_call(model: Any, inputs: dict[str, torch.Tensor], outputs: tuple[str, ...]) -> Callable[[], object]:
    def call() -> object:
        with torch.no_grad():
            found = model(**inputs)
        return tuple(getattr(found, name) for name in outputs)

    return call


def _notes(spec: ImageModel, settings: Settings, height: int, width: int) -> tuple[str, ...]:
    call = (
        f"One call {spec.does} images of {height}x{width}, {settings.batch_size} of them, drawn here and already on the"
        f" device, and ends with {' and '.join(spec.outputs)} there."
    )
    if settings.pretrained:
        return (call,)
    return (call, "Weights are random: the output means nothing, the work is the model's own.")
