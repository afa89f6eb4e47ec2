"""ViT-B/16, from an image's pixels to the logits of its classes.

Architecture figures are those of the published configuration file of google/vit-base-patch16-224.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from transformers import AutoModelForImageClassification, ViTConfig, ViTForImageClassification

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request
from tracekit.workloads.pictures import draw_images
from tracekit.workloads.pretrained import load_pretrained
from tracekit.workloads.settings import fill_in
from tracekit.workloads.vit_info import VIT
from tracekit.workloads.weights import random_weights

CLASSES = 1000
PATCH_PIXELS = 16


@dataclass(frozen=True, slots=True)
class Architecture:
    """What differs between the sizes; the rest is as published."""

    layers: int
    width: int
    heads: int
    feed_forward: int
    pixels: int


PUBLISHED = Architecture(layers=12, width=768, heads=12, feed_forward=3072, pixels=224)
TINY = Architecture(layers=2, width=64, heads=2, feed_forward=128, pixels=64)

ARCHITECTURES = {"full": PUBLISHED, "tiny": TINY}


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The model and its images on `device`, ready to be called. `size` is already chosen; `request.scope` checked.

    Raises TracekitError for pretrained weights that cannot be had or are no ViT's.
    """
    # A call takes milliseconds.
    settings = fill_in(VIT, request, size, device, gpu_iterations=100)
    dtype: torch.dtype = getattr(torch, settings.dtype)
    if request.pretrained:
        progress.detail(f"loading {request.pretrained}")
        model = _load(request.pretrained, dtype).to(device)
    else:
        with random_weights(dtype, device, request.seed):
            model = _model(ARCHITECTURES[size])
    model.requires_grad_(False).eval()
    pixels: int = model.config.image_size

    def call_at(other: Request) -> Callable[[], object]:
        images = draw_images(other.batch_size, pixels, pixels, settings.seed)
        return _make_call(model, images.to(device, dtype))

    return BuiltWorkload(
        info=VIT,
        settings=settings,
        call=call_at(request),
        call_at=call_at,
        targets=(CompileTarget("model", model),),
        components=(Component("model", sum(p.numel() for p in model.parameters()), compiled=True),),
        notes=_notes(settings, pixels),
        modules=(("model", model),),
    )


def _model(architecture: Architecture) -> ViTForImageClassification:
    return ViTForImageClassification(
        ViTConfig(
            num_hidden_layers=architecture.layers,
            hidden_size=architecture.width,
            num_attention_heads=architecture.heads,
            intermediate_size=architecture.feed_forward,
            image_size=architecture.pixels,
            patch_size=PATCH_PIXELS,
            hidden_act="gelu",
            layer_norm_eps=1e-12,
            qkv_bias=True,
            num_labels=CLASSES,
        )
    )


def _load(source: str, dtype: torch.dtype) -> ViTForImageClassification:
    # Asked for a ViT by name, transformers would fill one with random weights from another model's folder.
    model = load_pretrained(AutoModelForImageClassification, source, dtype)
    if not isinstance(model, ViTForImageClassification):
        raise TracekitError(f"{source} holds a {type(model).__name__}, which is no ViT: pass a ViT's to --pretrained")
    return model


def _make_call(model: nn.Module, images: torch.Tensor) -> Callable[[], object]:
    def call() -> object:
        with torch.no_grad():
            return model(pixel_values=images).logits

    return call


def _notes(settings: Settings, pixels: int) -> tuple[str, ...]:
    call = (
        f"One call classifies images of {pixels}x{pixels}, {settings.batch_size} of them, drawn here and already on the"
        " device, and ends with the logits there."
    )
    if settings.pretrained:
        return (call,)
    return (call, "Weights are random: the classes mean nothing, the work is the model's own.")
