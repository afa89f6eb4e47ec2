"""OWL-ViT-B/32, from an image's pixels and words to the boxes of what the words name.

Architecture figures are those of the published configuration file of google/owlvit-base-patch32.
"""

from __future__ import annotations

from functools import partial

import torch
from transformers import OwlViTConfig, OwlViTForObjectDetection

from tracekit.workloads import tokenizers
from tracekit.workloads.image_model import image_model
from tracekit.workloads.one_forward import build_one_forward
from tracekit.workloads.owlvit_info import OWLVIT

WORDS = ("a photo of a cat", "a photo of a dog")
TEXT_TOKENS = 16
VISION = {
    "full": {"num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    "tiny": {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128},
}
TEXT = {
    "full": {"num_hidden_layers": 12, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048},
    "tiny": {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64},
}
PIXELS = {"full": 768, "tiny": 64}


def _model(size: str) -> OwlViTForObjectDetection:
    return OwlViTForObjectDetection(
        OwlViTConfig(
            text_config={**TEXT[size], "max_position_embeddings": TEXT_TOKENS, "hidden_act": "quick_gelu"},
            vision_config={**VISION[size], "image_size": PIXELS[size], "patch_size": 32, "hidden_act": "quick_gelu"},
            projection_dim=TEXT[size]["hidden_size"],
        )
    )


def _words(count: int) -> dict[str, torch.Tensor]:
    """What to look for in each of so many images."""
    found = tokenizers.clip_tokenizer()(
        list(WORDS) * count, padding="max_length", max_length=TEXT_TOKENS, truncation=True, return_tensors="pt"
    )
    return {"input_ids": found["input_ids"], "attention_mask": found["attention_mask"]}


OWLVIT_MODEL = image_model(
    info=OWLVIT,
    kind=OwlViTForObjectDetection,
    make=_model,
    sizes={"full": (768, 768), "tiny": (64, 64)},
    does="looks for two phrases in",
    outputs=("logits", "pred_boxes"),
    words=_words,
)
build = partial(build_one_forward, OWLVIT_MODEL)
