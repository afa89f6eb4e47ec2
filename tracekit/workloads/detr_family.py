"""What the DETRs do alike: find the objects of an image, from its pixels to their boxes and classes."""

from __future__ import annotations

from typing import Any

from tracekit.model.workload import WorkloadInfo
from tracekit.workloads.image_model import image_model
from tracekit.workloads.one_forward import OneForward
from tracekit.workloads.resnet_backbone import resnet_backbone

TINY = {
    "num_queries": 10,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "d_model": 32,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
}


def detr(info: WorkloadInfo, config: Any, kind: Any, *, depth: int, queries: int) -> OneForward:
    """A model of `kind`, as transformers' `config` of it has it, with a ResNet of `depth` layers before it."""
    sizes = {"full": {"num_queries": queries}, "tiny": TINY}

    def make(size: str) -> Any:
        return kind(config(**sizes[size], **resnet_backbone(size, depth), num_labels=91))

    return image_model(
        info=info,
        kind=kind,
        make=make,
        sizes={"full": (800, 1066), "tiny": (64, 96)},
        does="finds the objects of",
        outputs=("logits", "pred_boxes"),
    )
