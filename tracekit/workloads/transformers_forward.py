"""Models of transformers whose call is one forward: made from their configuration's figures, inputs drawn here."""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoConfig, PreTrainedModel, WhisperFeatureExtractor

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.workload import BuiltWorkload, Request
from tracekit.workloads.building import load_pretrained
from tracekit.workloads.inputs import clip_tokenizer, draw_images
from tracekit.workloads.one_forward import build_one_forward
from tracekit.workloads.one_forward_table import OneForward

#: What is looked for in images.
PHRASES = ("a photo of a cat", "a photo of a dog")
PHRASE_TOKENS = 16
SAMPLES_PER_SECOND = 16_000
#: What Whisper's decoding begins with; ids of words are below.
START = 50_258

Inputs = dict[str, torch.Tensor]


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """As `build_one_forward`. Raises TracekitError where transformers cannot run MaskFormer in the dtype asked for."""
    if request.workload == "maskformer" and request.dtype not in (None, "float32"):
        from transformers.models.maskformer.modeling_maskformer_swin import MaskFormerSwinLayer

        # Until transformers 5.17 at least its Swin's mask was float32; 5.23 makes it in the type it is asked for.
        masker = getattr(MaskFormerSwinLayer, "get_attn_mask", None)
        if masker is None or "dtype" not in inspect.signature(masker).parameters:
            raise TracekitError(
                f"transformers {transformers.__version__} runs MaskFormer only in float32: leave --dtype out, or"
                " install a newer transformers"
            )
    return build_one_forward(_make, draw, request, size, device, progress, _load)


def _make(row: OneForward, size: str) -> PreTrainedModel:
    kind = getattr(transformers, row.kind)
    return kind(kind.config_class(**row.figures_at(size)))


def _load(row: OneForward, source: str, dtype: torch.dtype) -> PreTrainedModel:
    # Asked for a model by name, transformers would fill one with random weights from another model's folder.
    kind = getattr(transformers, row.kind)
    found, wanted = load_pretrained(AutoConfig, source, None).model_type, kind.config_class.model_type
    if found != wanted:
        raise TracekitError(f"{source} holds a model of type {found}, not {wanted}: pass another model to --pretrained")
    return load_pretrained(kind, source, dtype)


def draw(row: OneForward, model: Any, sizes: Mapping[str, int], count: int, seed: int) -> Inputs:
    """What the row draws: images, with two phrases to look for in each; ids of words that are no padding; tones that
    rise from pitches placed by the seed, as the published feature extractor hears them, with ids of words."""
    generator = torch.Generator().manual_seed(seed)
    if row.draws == "sentences":
        ids = torch.randint(1, model.config.vocab_size, (count, sizes["tokens"]), generator=generator)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if row.draws == "sounds":
        time_s = np.arange(sizes["seconds"] * SAMPLES_PER_SECOND) / SAMPLES_PER_SECOND
        pitches_hz = (100 + 300 * torch.rand(count, generator=generator)).tolist()
        sounds = [np.sin(2 * np.pi * (pitch + 20 * time_s) * time_s).astype(np.float32) for pitch in pitches_hz]
        extract = WhisperFeatureExtractor(feature_size=80, chunk_length=sizes["seconds"])
        features = extract(sounds, sampling_rate=SAMPLES_PER_SECOND, return_tensors="pt")
        words = torch.randint(START, (count, sizes["tokens"]), generator=generator)
        words[:, 0] = START
        return {"input_features": features["input_features"], "decoder_input_ids": words}
    images = {"pixel_values": draw_images(count, sizes["height"], sizes["width"], seed)}
    if row.draws == "images":
        return images
    found = clip_tokenizer()(
        list(PHRASES) * count, padding="max_length", max_length=PHRASE_TOKENS, truncation=True, return_tensors="pt"
    )
    return {**images, "input_ids": found["input_ids"], "attention_mask": found["attention_mask"]}
