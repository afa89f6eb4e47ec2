"""DETR with ResNet-50, from an image's pixels to the boxes and classes of its objects.

Architecture figures are those of the published configuration file of facebook/detr-resnet-50.
"""

from __future__ import annotations

from functools import partial

from transformers import DetrConfig, DetrForObjectDetection

from tracekit.workloads.detr_info import DETR_50
from tracekit.workloads.image_model import image_model
from tracekit.workloads.one_forward import build_one_forward
from tracekit.workloads.resnet_backbone import resnet_backbone

DETR = {
    "full": {"num_queries": 100},
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


def _model(size: str) -> DetrForObjectDetection:
    return DetrForObjectDetection(DetrConfig(**DETR[size], **resnet_backbone(size, 50), num_labels=91))


DETR_50_MODEL = image_model(
    info=DETR_50,
    kind=DetrForObjectDetection,
    make=_model,
    sizes={"full": (800, 1066), "tiny": (64, 96)},
    does="finds the objects of",
    outputs=("logits", "pred_boxes"),
)
build = partial(build_one_forward, DETR_50_MODEL)
