"""Qwen2.5-VL's processor, built here: prompts and images in, the model's inputs out, and how long that took.

Image processors have one name for each backend, and which name is whose changed between transformers 4 and 5; this is
the only file that knows. torchvision is no need of ours: its builds fit one build of torch each, and a wrong one keeps
transformers from being imported at all. Without it there is PIL's image processor.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
import transformers
from msgspec import Struct
from PIL import Image
from transformers import AutoProcessor, ProcessorMixin, Qwen2_5_VLProcessor, Qwen2TokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode
from transformers.utils import is_torchvision_available

from tracekit.errors import TracekitError
from tracekit.workloads.building import load_pretrained

#: The published tokenizer's special tokens: the first has the id 151643, each next one the next.
FIRST_SPECIAL = 151_643
NAMES = (
    "endoftext im_start im_end object_ref_start object_ref_end box_start box_end quad_start quad_end vision_start"
    " vision_end vision_pad image_pad video_pad"
).split()
SPECIAL = tuple(f"<|{name}|>" for name in NAMES)

#: Says what the published template says, for messages of images and text.
CHAT_TEMPLATE = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

#: How often each step is timed; the median is told.
TIMED_CALLS = 5

T = TypeVar("T")


class Processed(Struct, frozen=True):
    """The model's inputs, on the CPU, and median wall times of the two steps; None without process_vision_info."""

    inputs: Any
    vision_info_us: float | None
    processor_us: float


class ImageProcessor(Qwen2_5_VLProcessor):
    """The published processor without its part for videos, which needs torchvision."""

    attributes = ("image_processor", "tokenizer")

    def __init__(self, image_processor: Any = None, tokenizer: Any = None, chat_template: str | None = None) -> None:
        self.image_token, self.video_token = "<|image_pad|>", "<|video_pad|>"
        self.image_token_id, self.video_token_id = tokenizer.convert_tokens_to_ids([self.image_token, self.video_token])
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)


def choose_fast(asked: bool | None) -> bool:
    """Whether the fast image processor is used: where torchvision is, unless asked otherwise. Raises TracekitError when
    it is asked for and torchvision is not there."""
    there = bool(is_torchvision_available())
    if asked and not there:
        raise TracekitError(
            "the fast processor needs torchvision: install the build that matches this torch, or leave --use-fast out"
        )
    return there if asked is None else asked


def build_processor(*, fast: bool) -> Any:
    """A processor as published, but for videos and for text, which is cut into bytes instead of learnt word pieces."""
    return ImageProcessor(_image_processor(fast)(), qwen_tokenizer(), chat_template=CHAT_TEMPLATE)


def load_processor(source: str, *, fast: bool) -> Any:
    """The processor that lies beside real weights, with the image processor asked for. Raises TracekitError when it
    cannot be had."""
    if not is_torchvision_available():
        raise TracekitError("the published processor needs torchvision: install the build that matches this torch")
    processor = load_pretrained(AutoProcessor, source, None)
    processor.image_processor = load_pretrained(_image_processor(fast), source, None)
    return processor


def _image_processor(fast: bool) -> Any:
    """torchvision's, which is the fast one, or PIL's."""
    if hasattr(transformers, "Qwen2VLImageProcessorPil"):
        return transformers.Qwen2VLImageProcessor if fast else transformers.Qwen2VLImageProcessorPil
    return transformers.Qwen2VLImageProcessorFast if fast else transformers.Qwen2VLImageProcessor


def qwen_tokenizer() -> Any:
    """A byte-level Qwen tokenizer with the special tokens at their published ids, padding on the left."""
    special = {token: FIRST_SPECIAL + index for index, token in enumerate(SPECIAL)}
    vocabulary = {letter: index for index, letter in enumerate(bytes_to_unicode().values())} | special
    # From files, the one way that all versions of transformers know.
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("vocab.json", "merges.txt")]
        paths[0].write_text(json.dumps(vocabulary))
        paths[1].write_text("#version: 0.2\n")
        tokenizer = Qwen2TokenizerFast(*map(str, paths), additional_special_tokens=list(SPECIAL[1:]))
    tokenizer.padding_side = "left"
    return tokenizer


def process(processor: Any, prompts: list[str], pictures: list[Image.Image]) -> Processed:
    """One message for each prompt and its picture, as users write them, made into the model's inputs."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": prompt}]}
        for prompt, picture in zip(prompts, pictures, strict=True)
    ]
    texts = [processor.apply_chat_template([each], tokenize=False, add_generation_prompt=True) for each in messages]
    images, vision_info_us = pictures, None
    # qwen_vl_utils imports torchvision without saying so. Without either the images are taken as they are: drawn in a
    # size that process_vision_info leaves alone.
    with suppress(ModuleNotFoundError):
        if is_torchvision_available():
            from qwen_vl_utils import process_vision_info

            (images, _), vision_info_us = _timed(lambda: process_vision_info([[each] for each in messages]))
    inputs, processor_us = _timed(lambda: processor(text=list(texts), images=images, padding=True, return_tensors="pt"))
    return Processed(inputs, vision_info_us, processor_us)


def _timed(step: Callable[[], T]) -> tuple[T, float]:
    """What the step gives, and its median wall time over calls after the first, in microseconds."""
    found = step()
    walls = []
    with torch.no_grad():
        for _ in range(TIMED_CALLS):
            start = time.perf_counter_ns()
            step()
            walls.append((time.perf_counter_ns() - start) / 1e3)
    return found, statistics.median(walls)
