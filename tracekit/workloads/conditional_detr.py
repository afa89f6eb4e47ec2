"""Conditional DETR with ResNet-50, from an image's pixels to the boxes and classes of its objects.

Architecture figures are those of the published configuration file of microsoft/conditional-detr-resnet-50.
"""

from __future__ import annotations

from functools import partial

from transformers import ConditionalDetrConfig, ConditionalDetrForObjectDetection

from tracekit.workloads.conditional_detr_info import CONDITIONAL_DETR
from tracekit.workloads.detr_family import detr
from tracekit.workloads.one_forward import build_one_forward

CONDITIONAL_DETR_MODEL = detr(
    CONDITIONAL_DETR, ConditionalDetrConfig, ConditionalDetrForObjectDetection, depth=50, queries=300
)
build = partial(build_one_forward, CONDITIONAL_DETR_MODEL)
