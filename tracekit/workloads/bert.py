"""BERT-base, from token ids to the logits of masked words.

Architecture figures are those of the published configuration file of google-bert/bert-base-uncased.
"""

from __future__ import annotations

from functools import partial

import torch
from transformers import BertConfig, BertForMaskedLM

from tracekit.workloads.bert_info import BERT
from tracekit.workloads.one_forward import OneForward, build_one_forward

FULL = {"num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
TINY = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128}
VOCABULARY = {"full": 30_522, "tiny": 1000}
TOKENS = {"full": 128, "tiny": 16}


def _model(size: str) -> BertForMaskedLM:
    return BertForMaskedLM(BertConfig(**{"full": FULL, "tiny": TINY}[size], vocab_size=VOCABULARY[size]))


def draw_sentences(size: str, count: int, seed: int) -> dict[str, torch.Tensor]:
    """Token ids drawn by the seed, none of them padding."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, VOCABULARY[size], (count, TOKENS[size]), generator=generator)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


BERT_MODEL = OneForward(
    info=BERT,
    kind=BertForMaskedLM,
    make=_model,
    inputs=draw_sentences,
    does={size: f"reads sentences of {tokens} tokens, drawn as ids by the seed" for size, tokens in TOKENS.items()},
)
build = partial(build_one_forward, BERT_MODEL)
