"""Whisper-small, from the spectrum of a sound to the logits of its words: encoder and decoder in one forward.

Architecture figures are those of the published configuration file of openai/whisper-small.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

from tracekit.workloads.one_forward import OneForward, build_one_forward
from tracekit.workloads.whisper_info import WHISPER

FULL = {"layers": 12, "width": 768, "heads": 12, "feed_forward": 3072}
TINY = {"layers": 2, "width": 64, "heads": 2, "feed_forward": 128}
VOCABULARY = 51_865
#: What decoding begins with.
START = 50_258
SAMPLES_PER_SECOND = 16_000
#: Two frames of the spectrum, each 10 ms, become one position.
POSITIONS_PER_SECOND = 50
SECONDS = {"full": 30, "tiny": 1}
TOKENS = {"full": 64, "tiny": 8}


def _model(size: str) -> WhisperForConditionalGeneration:
    figures = {"full": FULL, "tiny": TINY}[size]
    return WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=VOCABULARY,
            d_model=figures["width"],
            encoder_layers=figures["layers"],
            decoder_layers=figures["layers"],
            encoder_attention_heads=figures["heads"],
            decoder_attention_heads=figures["heads"],
            encoder_ffn_dim=figures["feed_forward"],
            decoder_ffn_dim=figures["feed_forward"],
            max_source_positions=SECONDS[size] * POSITIONS_PER_SECOND,
            # Nothing is written after what is read.
            use_cache=False,
        )
    )


def make_sounds(size: str, count: int, seed: int) -> dict[str, torch.Tensor]:
    """Tones that rise from pitches placed by the seed, as the published feature extractor hears them, and the ids of
    words drawn by the seed."""
    generator = torch.Generator().manual_seed(seed)
    time_s = np.arange(SECONDS[size] * SAMPLES_PER_SECOND) / SAMPLES_PER_SECOND
    pitches_hz = (100 + 300 * torch.rand(count, generator=generator)).tolist()
    sounds = [np.sin(2 * np.pi * (pitch + 20 * time_s) * time_s).astype(np.float32) for pitch in pitches_hz]
    hear = WhisperFeatureExtractor(feature_size=80, chunk_length=SECONDS[size])
    words = torch.randint(START, (count, TOKENS[size]), generator=generator)
    words[:, 0] = START
    heard = hear(sounds, sampling_rate=SAMPLES_PER_SECOND, return_tensors="pt")
    return {"input_features": heard["input_features"], "decoder_input_ids": words}


WHISPER_MODEL = OneForward(
    info=WHISPER,
    kind=WhisperForConditionalGeneration,
    make=_model,
    inputs=make_sounds,
    does={
        size: f"encodes sounds of {SECONDS[size]} s, as spectra, and decodes {tokens} words of each at once"
        for size, tokens in TOKENS.items()
    },
)
build = partial(build_one_forward, WHISPER_MODEL)
