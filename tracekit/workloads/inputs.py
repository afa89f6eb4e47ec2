"""What models are shown and told, made here: pictures, and tokenizers for random weights. These have the published
classes and special tokens, and cut text into single characters, not learnt word pieces."""

import torch
from PIL import Image
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


def draw_images(count: int, height: int, width: int, seed: int) -> torch.Tensor:
    """RGB images from -1 to 1, the same on every device: a blue disc placed by the seed, before a gradient."""
    places = torch.rand(count, 2, 1, 1, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    down, across = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    disc = (down - places[:, 0]) ** 2 + (across - places[:, 1]) ** 2 < 0.25
    return torch.stack((across.expand_as(disc), down.expand_as(disc), disc * 2.0 - 1), dim=1)


def draw_pictures(count: int, height: int, width: int, seed: int) -> list[Image.Image]:
    """The same images as PIL has them."""
    bytes_ = ((draw_images(count, height, width, seed) + 1) * 127.5).to(torch.uint8).permute(0, 2, 3, 1)
    return [Image.fromarray(each.numpy()) for each in bytes_]
