"""DETR with ResNet-50, from an image's pixels to the boxes and classes of its objects.

Architecture figures are those of the published configuration file of facebook/detr-resnet-50.
"""

from __future__ import annotations

from functools import partial

from transformers import DetrConfig, DetrForObjectDetection

from tracekit.workloads.detr_family import detr
from tracekit.workloads.detr_info import DETR_50
from tracekit.workloads.one_forward import build_one_forward

DETR_50_MODEL = detr(DETR_50, DetrConfig, DetrForObjectDetection, depth=50, queries=100)
build = partial(build_one_forward, DETR_50_MODEL)
