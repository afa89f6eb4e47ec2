"""SegFormer-B0, from an image's pixels to the logits of their classes.

Architecture figures are those of the published configuration file of nvidia/segformer-b0-finetuned-ade-512-512.
"""

from __future__ import annotations

from functools import partial

from transformers import SegformerConfig, SegformerForSemanticSegmentation

from tracekit.workloads.image_model import image_model
from tracekit.workloads.one_forward import build_one_forward
from tracekit.workloads.segformer_info import SEGFORMER

FULL = {"depths": [2, 2, 2, 2], "hidden_sizes": [32, 64, 160, 256], "num_attention_heads": [1, 2, 5, 8]}
TINY = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 16, 32, 32], "num_attention_heads": [1, 1, 2, 2]}


def _model(size: str) -> SegformerForSemanticSegmentation:
    config = SegformerConfig(
        **{"full": FULL, "tiny": TINY}[size],
        decoder_hidden_size={"full": 256, "tiny": 32}[size],
        num_labels=150,
    )
    return SegformerForSemanticSegmentation(config)


SEGFORMER_MODEL = image_model(
    info=SEGFORMER,
    kind=SegformerForSemanticSegmentation,
    make=_model,
    sizes={"full": (512, 512), "tiny": (64, 64)},
    does="segments",
)
build = partial(build_one_forward, SEGFORMER_MODEL)
