"""Tokenizers built here, for models that run with random weights: same classes and special tokens as the published
ones, but text is cut into single characters instead of learnt word pieces."""

from __future__ import annotations

from transformers import CLIPTokenizer, T5TokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

CLIP_VOCABULARY = 49408
CLIP_LENGTH = 77
T5_LENGTH = 512


def clip_tokenizer() -> CLIPTokenizer:
    """A byte-level CLIP tokenizer with the special tokens at their published ids, padding to 77."""
    letters = list(bytes_to_unicode().values())
    pieces = letters + [letter + "</w>" for letter in letters]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    vocabulary["<|startoftext|>"] = CLIP_VOCABULARY - 2
    vocabulary["<|endoftext|>"] = CLIP_VOCABULARY - 1
    return CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=CLIP_LENGTH)


def t5_tokenizer() -> T5TokenizerFast:
    """A character-level T5 tokenizer: <pad> 0, </s> 1, <unk> 2, as published."""
    printable = [chr(code) for code in range(33, 127)]
    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    vocabulary = [*special, *((piece, -2.0) for piece in ["\u2581", *printable])]
    return T5TokenizerFast(vocab=vocabulary, model_max_length=T5_LENGTH)
