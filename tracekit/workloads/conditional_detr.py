"""Conditional DETR with ResNet-50, from an image's pixels to the boxes and classes of its objects.

Architecture figures are those of the published configuration file of microsoft/conditional-detr-resnet-50.
"""

from __future__ import annotations

from functools import partial

from transformers import ConditionalDetrConfig, ConditionalDetrForObjectDetection

from tracekit.workloads.conditional_detr_info import CONDITIONAL_DETR
from tracekit.workloads.image_model import image_model
from tracekit.workloads.one_forward import build_one_forward
from tracekit.workloads.resnet_backbone import resnet_backbone

DETR = {
    "full": {"num_queries": 300},
    "tiny": {
        "num_queries": 10,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 32,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
    },
}


def _model(size: str) -> ConditionalDetrForObjectDetection:
    return ConditionalDetrForObjectDetection(
        ConditionalDetrConfig(**DETR[size], **resnet_backbone(size, 50), num_labels=91)
    )


CONDITIONAL_DETR_MODEL = image_model(
    info=CONDITIONAL_DETR,
    kind=ConditionalDetrForObjectDetection,
    make=_model,
    sizes={"full": (800, 1066), "tiny": (64, 96)},
    does="finds the objects of",
    outputs=("logits", "pred_boxes"),
)
build = partial(build_one_forward, CONDITIONAL_DETR_MODEL)
