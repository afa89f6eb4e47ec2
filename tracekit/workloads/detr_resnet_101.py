"""DETR with ResNet-101, from an image's pixels to the boxes and classes of its objects.

Architecture figures are those of the published configuration file of facebook/detr-resnet-101.
"""

from __future__ import annotations

from functools import partial

from transformers import DetrConfig, DetrForObjectDetection

from tracekit.workloads.detr_family import detr
from tracekit.workloads.detr_resnet_101_info import DETR_101
from tracekit.workloads.one_forward import build_one_forward

DETR_101_MODEL = detr(DETR_101, DetrConfig, DetrForObjectDetection, depth=101, queries=100)
build = partial(build_one_forward, DETR_101_MODEL)
