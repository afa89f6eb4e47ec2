"""ResNet-50, from an image's pixels to the logits of its classes.

Architecture figures are those of the published configuration file of microsoft/resnet-50.
"""

from __future__ import annotations

from functools import partial

from transformers import ResNetConfig, ResNetForImageClassification

from tracekit.workloads.image_model import image_model
from tracekit.workloads.one_forward import build_one_forward
from tracekit.workloads.resnet_info import RESNET

FULL = {"depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048], "embedding_size": 64}
TINY = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 64, 128], "embedding_size": 8}


def _model(size: str) -> ResNetForImageClassification:
    config = ResNetConfig(**{"full": FULL, "tiny": TINY}[size], layer_type="bottleneck", num_labels=1000)
    return ResNetForImageClassification(config)


RESNET_MODEL = image_model(
    info=RESNET,
    kind=ResNetForImageClassification,
    make=_model,
    sizes={"full": (224, 224), "tiny": (64, 64)},
    does="classifies",
)
build = partial(build_one_forward, RESNET_MODEL)
