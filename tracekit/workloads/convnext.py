"""ConvNeXt-L, from an image's pixels to the logits of its classes.

Architecture figures are those of the published configuration file of facebook/convnext-large-224.
"""

from __future__ import annotations

from functools import partial

from transformers import ConvNextConfig, ConvNextForImageClassification

from tracekit.workloads.convnext_info import CONVNEXT
from tracekit.workloads.image_model import image_model
from tracekit.workloads.one_forward import build_one_forward

FULL = {"depths": [3, 3, 27, 3], "hidden_sizes": [192, 384, 768, 1536]}
TINY = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 64, 128]}


def _model(size: str) -> ConvNextForImageClassification:
    return ConvNextForImageClassification(ConvNextConfig(**{"full": FULL, "tiny": TINY}[size], num_labels=1000))


CONVNEXT_MODEL = image_model(
    info=CONVNEXT,
    kind=ConvNextForImageClassification,
    make=_model,
    sizes={"full": (224, 224), "tiny": (64, 64)},
    does="classifies",
)
build = partial(build_one_forward, CONVNEXT_MODEL)
