"""DeepLabV3 with MobileNetV2, from an image's pixels to the logits of their classes.

Architecture figures are those of the published configuration file of google/deeplabv3_mobilenet_v2_1.0_513.
"""

from __future__ import annotations

from functools import partial

from transformers import MobileNetV2Config, MobileNetV2ForSemanticSegmentation

from tracekit.workloads.deeplabv3_mobilenet_info import DEEPLABV3_MOBILENET
from tracekit.workloads.image_model import image_model
from tracekit.workloads.one_forward import build_one_forward

WIDTHS = {"full": 1.0, "tiny": 0.25}


def _model(size: str) -> MobileNetV2ForSemanticSegmentation:
    return MobileNetV2ForSemanticSegmentation(
        MobileNetV2Config(
            depth_multiplier=WIDTHS[size],
            image_size={"full": 513, "tiny": 65}[size],
            output_stride=8,
            expand_ratio=6.0,
            finegrained_output=True,
            first_layer_is_expansion=True,
            tf_padding=True,
            hidden_act="relu6",
            num_labels=21,
        )
    )


DEEPLABV3_MOBILENET_MODEL = image_model(
    info=DEEPLABV3_MOBILENET,
    kind=MobileNetV2ForSemanticSegmentation,
    make=_model,
    sizes={"full": (513, 513), "tiny": (65, 65)},
    does="segments",
)
build = partial(build_one_forward, DEEPLABV3_MOBILENET_MODEL)
