"""BEiT-B/16, from an image's pixels to the logits of its classes.

Architecture figures are those of the published configuration file of microsoft/beit-base-patch16-224-pt22k-ft22k.
"""

from __future__ import annotations

from functools import partial

from transformers import BeitConfig, BeitForImageClassification

from tracekit.workloads.beit_info import BEIT
from tracekit.workloads.image_model import image_model
from tracekit.workloads.one_forward import build_one_forward

FULL = {
    "num_hidden_layers": 12,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}
TINY = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128}
PIXELS = {"full": 224, "tiny": 64}
CLASSES = 21_841


def _model(size: str) -> BeitForImageClassification:
    return BeitForImageClassification(
        BeitConfig(
            **{"full": FULL, "tiny": TINY}[size],
            image_size=PIXELS[size],
            patch_size=16,
            use_relative_position_bias=True,
            use_absolute_position_embeddings=False,
            use_mean_pooling=True,
            layer_scale_init_value=0.1,
            num_labels=CLASSES,
        )
    )


BEIT_MODEL = image_model(
    info=BEIT,
    kind=BeitForImageClassification,
    make=_model,
    sizes={"full": (224, 224), "tiny": (64, 64)},
    does="classifies",
)
build = partial(build_one_forward, BEIT_MODEL)
