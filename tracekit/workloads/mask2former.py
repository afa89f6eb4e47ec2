"""Mask2Former with Swin-T, from an image's pixels to the masks and classes of its segments.

Architecture figures are those of the published configuration file of facebook/mask2former-swin-tiny-coco-panoptic.
"""

from __future__ import annotations

from functools import partial

import scipy  # noqa: F401  Their loss wants it, and is built with the model.
from transformers import Mask2FormerConfig, Mask2FormerForUniversalSegmentation, SwinConfig

from tracekit.workloads.image_model import image_model
from tracekit.workloads.mask2former_info import MASK2FORMER
from tracekit.workloads.one_forward import build_one_forward

SWIN = {
    "full": {"embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24], "window_size": 7},
    "tiny": {"embed_dim": 16, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 2, 2], "window_size": 4},
}
HEAD = {
    "full": {"num_queries": 100, "encoder_layers": 6, "decoder_layers": 10},
    "tiny": {
        "num_queries": 10,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "feature_size": 32,
        "mask_feature_size": 32,
        "hidden_dim": 32,
        "encoder_feedforward_dim": 64,
        "dim_feedforward": 64,
        "num_attention_heads": 2,
    },
}


def _model(size: str) -> Mask2FormerForUniversalSegmentation:
    backbone = SwinConfig(**SWIN[size], out_features=["stage1", "stage2", "stage3", "stage4"])
    return Mask2FormerForUniversalSegmentation(
        Mask2FormerConfig(**HEAD[size], backbone_config=backbone, num_labels=133)
    )


MASK2FORMER_MODEL = image_model(
    info=MASK2FORMER,
    kind=Mask2FormerForUniversalSegmentation,
    make=_model,
    sizes={"full": (384, 384), "tiny": (64, 64)},
    does="segments",
    outputs=("class_queries_logits", "masks_queries_logits"),
)
build = partial(build_one_forward, MASK2FORMER_MODEL)
