"""MaskFormer with Swin-B, from an image's pixels to the masks and classes of its segments.

Architecture figures are those of the published configuration file of facebook/maskformer-swin-base-ade.
"""

from __future__ import annotations

import inspect

import scipy  # noqa: F401  Their loss wants it, and is built with the model.
import transformers
from transformers import DetrConfig, MaskFormerConfig, MaskFormerForInstanceSegmentation, SwinConfig
from transformers.models.maskformer.modeling_maskformer_swin import MaskFormerSwinLayer

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.workload import BuiltWorkload, Request
from tracekit.workloads.image_model import image_model
from tracekit.workloads.maskformer_info import MASKFORMER
from tracekit.workloads.one_forward import build_one_forward

SWIN = {
    "full": {
        "embed_dim": 128,
        "depths": [2, 2, 18, 2],
        "num_heads": [4, 8, 16, 32],
        "window_size": 12,
        "image_size": 384,
    },
    "tiny": {"embed_dim": 16, "depths": [2, 1, 1, 1], "num_heads": [1, 2, 2, 2], "window_size": 4, "image_size": 64},
}
#: Of DETR it takes the decoder alone.
DECODER = {
    "full": {"num_queries": 100, "decoder_layers": 6},
    "tiny": {
        "num_queries": 10,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 32,
        "decoder_ffn_dim": 64,
        "decoder_attention_heads": 2,
    },
}
FEATURES = {"full": 256, "tiny": 32}


def _model(size: str) -> MaskFormerForInstanceSegmentation:
    config = MaskFormerConfig(
        backbone_config=SwinConfig(**SWIN[size], out_features=["stage1", "stage2", "stage3", "stage4"]),
        decoder_config=DetrConfig(**DECODER[size]),
        fpn_feature_size=FEATURES[size],
        mask_feature_size=FEATURES[size],
        num_labels=150,
    )
    return MaskFormerForInstanceSegmentation(config)


MASKFORMER_MODEL = image_model(
    info=MASKFORMER,
    kind=MaskFormerForInstanceSegmentation,
    make=_model,
    sizes={"full": (640, 640), "tiny": (64, 64)},
    does="segments",
    outputs=("class_queries_logits", "masks_queries_logits"),
)


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """As `build_one_forward`. Raises TracekitError where transformers cannot run its Swin in the dtype asked for."""
    if request.dtype not in (None, "float32") and not _masks_in_any_type():
        raise TracekitError(
            f"transformers {transformers.__version__} runs MaskFormer in float32 alone: it masks shifted windows in"
            " float32, whatever the model's type. Leave --dtype out, or install a newer transformers"
        )
    return build_one_forward(MASKFORMER_MODEL, request, size, device, progress)


def _masks_in_any_type() -> bool:
    # Until 5.17 at least the mask was float32; 5.23 makes it in the type it is asked for.
    masker = getattr(MaskFormerSwinLayer, "get_attn_mask", None)
    return masker is not None and "dtype" in inspect.signature(masker).parameters
