"""Qwen2.5-VL, from prompts and images to the tokens of the answers.

Architecture figures are those of the published configuration files of Qwen/Qwen2.5-VL-3B-Instruct and -7B-Instruct.

Image processors have one name for each backend, and which name is whose changed between transformers 4 and 5.
torchvision is no need of ours: its builds fit one build of torch each, and a wrong one keeps transformers from being
imported at all. Without it there is PIL's image processor.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeVar

import torch
import transformers
from msgspec import Struct
from msgspec.structs import replace
from PIL import Image
from transformers import (
    AutoProcessor,
    ProcessorMixin,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2TokenizerFast,
)
from transformers.convert_slow_tokenizer import bytes_to_unicode
from transformers.utils import is_torchvision_available

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, Generation, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request
from tracekit.workloads.building import count_parameters, fill_in, load_pretrained, random_weights
from tracekit.workloads.generating import make_call
from tracekit.workloads.inputs import draw_pictures
from tracekit.workloads.registry import QWEN_VL

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

#: Asked in turn where no prompt is given; of different lengths, so that a batch is padded as users' are.
PROMPTS = ("Describe this image.", "What is the disc in the picture in front of?", "Which colours are there?")
#: Arguments of both configurations that differ between the sizes; a vision tower ends with a block of full attention.
TEXT = "num_hidden_layers hidden_size num_attention_heads num_key_value_heads intermediate_size vocab_size".split()
VISION = "fullatt_block_indexes hidden_size num_heads intermediate_size".split()


class Architecture(Struct, frozen=True):
    """What differs between the sizes: figures of `TEXT` and `VISION`, the sections of the rotary embedding, and those
    of a call. The rest is as published."""

    text: tuple[int, ...]
    vision: tuple[list[int], int, int, int]
    rope_sections: tuple[int, int, int] = (16, 24, 24)
    tied: bool = True
    pixels: int = 448
    new_tokens: int = 128


TOWER = ([7, 15, 23, 31], 1280, 16, 3420)
ARCHITECTURES = {
    "7b": Architecture((28, 3584, 28, 4, 18944, 152_064), TOWER, tied=False),
    "3b": Architecture((36, 2048, 16, 2, 11008, 151_936), TOWER),
    "small": Architecture((4, 2048, 16, 2, 11008, 151_936), ([3], *TOWER[1:]), new_tokens=32),
    "tiny": Architecture((2, 64, 2, 1, 128, 151_936), ([1], 64, 2, 128), (4, 6, 6), pixels=56, new_tokens=4),
}


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The model and its prompts on `device`. Raises TracekitError for what the phase has not."""
    settings, generation = _settings(request, size, device)
    if settings.scope == "visual" and generation.phase == "decode":
        raise TracekitError("decode does not run the vision tower: pass another --scope")
    model, processor = _model_and_processor(request, settings, generation, ARCHITECTURES[size], progress)
    progress.detail("processing prompts and images")
    assert settings.height and settings.width
    count = settings.batch_size
    prompts = [settings.prompt] * count if settings.prompt else list(islice(cycle(PROMPTS), count))
    pictures = draw_pictures(count, settings.height, settings.width, settings.seed)
    inputs, took = process(processor, prompts, pictures)
    inputs = inputs.to(device)
    visual, language = count_parameters(model.model.visual), count_parameters(model.model.language_model)
    # Where embeddings and head are one, they count with the decoder.
    head = count_parameters(model) - visual - language
    parts = (
        Component("vision tower", visual, compiled=settings.scope in ("model", "regional", "visual")),
        Component("decoder", language, compiled=settings.scope in ("model", "regional", "language")),
    )
    return BuiltWorkload(
        info=QWEN_VL,
        settings=settings,
        call=make_call(model, inputs, generation, settings.mode),
        targets=_targets(model, generation, settings.scope),
        components=(*parts, Component("head", head, compiled=settings.scope == "model")) if head else parts,
        notes=_notes(settings, generation, inputs["input_ids"].shape[1], took),
        modules=(("model", model),),
        targets_of=partial(_targets, model, generation),
    )


def _settings(request: Request, size: str, device: str) -> tuple[Settings, Generation]:
    architecture = ARCHITECTURES[size]
    phase = request.phase or "generate"
    if phase != "generate" and request.max_new_tokens is not None:
        raise TracekitError(f"--max-new-tokens has no effect on {phase}: leave it out, or pass --phase generate")
    generation = Generation(
        phase=phase,
        max_new_tokens=(request.max_new_tokens or architecture.new_tokens) if phase == "generate" else None,
        cache=request.cache or "dynamic",
        fast_processor=choose_fast(request.use_fast),
    )
    settings = replace(
        fill_in(QWEN_VL, request, size, device),
        height=request.height or architecture.pixels,
        width=request.width or architecture.pixels,
        generation=generation,
    )
    return settings, generation


def _model_and_processor(
    request: Request, settings: Settings, generation: Generation, architecture: Architecture, progress: Progress
) -> tuple[Any, Any]:
    dtype: torch.dtype = getattr(torch, settings.dtype)
    if request.pretrained:
        progress.detail(f"loading {request.pretrained}")
        model = load_pretrained(Qwen2_5_VLForConditionalGeneration, request.pretrained, dtype).to(settings.device)
        if not is_torchvision_available():
            raise TracekitError("the published processor needs torchvision: install the build that matches this torch")
        processor = load_pretrained(AutoProcessor, request.pretrained, None)
        image_processor = _image_processor(bool(generation.fast_processor))
        processor.image_processor = load_pretrained(image_processor, request.pretrained, None)
    else:
        with random_weights(dtype, settings.device, request.seed):
            model = _model(architecture)
        processor = build_processor(fast=bool(generation.fast_processor))
    model.requires_grad_(False).eval()
    # Every call writes as many tokens as it is asked for, whatever they are.
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = FIRST_SPECIAL
    return model, processor


def _model(architecture: Architecture) -> Qwen2_5_VLForConditionalGeneration:
    ids = {token: FIRST_SPECIAL + index for index, token in enumerate(SPECIAL)}
    text = {
        **dict(zip(TEXT, architecture.text, strict=True)),
        "max_position_embeddings": 128_000,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000.0,
        "rope_scaling": {"type": "mrope", "mrope_section": list(architecture.rope_sections)},
        "use_sliding_window": False,
        "tie_word_embeddings": architecture.tied,
    }
    vision = {
        **dict(zip(VISION, architecture.vision, strict=True)),
        "depth": architecture.vision[0][-1] + 1,
        "out_hidden_size": text["hidden_size"],
        "patch_size": 14,
        "window_size": 112,
        "tokens_per_second": 2,
    }
    return Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(
            text_config=text,
            vision_config=vision,
            image_token_id=ids["<|image_pad|>"],
            video_token_id=ids["<|video_pad|>"],
            vision_start_token_id=ids["<|vision_start|>"],
            vision_end_token_id=ids["<|vision_end|>"],
            tie_word_embeddings=architecture.tied,
        )
    )


def _targets(model: Any, generation: Generation, scope: str) -> tuple[CompileTarget, ...]:
    if scope == "regional":
        # A part that the phase never runs would be compiled for nothing, and only ever be called eager.
        parts = ("visual.blocks", "language_model.layers")[generation.phase == "decode" :]
        return tuple(
            CompileTarget(f"model.model.{part}.{index}", block)
            for part in parts
            for index, block in enumerate(model.model.get_submodule(part))
        )
    whole = {
        "model": CompileTarget("model", model),
        "language": CompileTarget("model.model.language_model", model.model.language_model),
        "visual": CompileTarget("model.model.visual", model.model.visual),
    }
    return (whole[scope],)


def _notes(settings: Settings, generation: Generation, tokens: int, took: str) -> tuple[str, ...]:
    count = settings.batch_size
    what = {
        "generate": f"generates {generation.max_new_tokens} tokens for each of {count} prompts (greedy `generate`)",
        "prefill": f"prefills {count} prompts in one forward, up to the logits of the next token",
        "decode": f"decodes one token for each of {count} cached prompts, up to the logits of the next token",
    }[generation.phase]
    call = (
        f"One call {what}, with a {generation.cache} cache. Prompts have {tokens} tokens with padding, each with a"
        f" generated image of {settings.height}x{settings.width}. All inputs are on the device before the call."
    )
    kind = "fast processor (torchvision)" if generation.fast_processor else "slow processor (PIL)"
    processor = f"The {kind} took {took}. The call does not include it."
    if settings.pretrained:
        return (call, processor)
    random = "Random weights and a byte tokenizer: the answers are noise, kernels and shapes are the model's."
    return (call, processor, random)


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


def process(processor: Any, prompts: list[str], pictures: list[Image.Image]) -> tuple[Any, str]:
    """One message for each prompt and its picture, as users write them, made into the model's inputs on the CPU; and
    how long that took, in words."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": prompt}]}
        for prompt, picture in zip(prompts, pictures, strict=True)
    ]
    texts = [processor.apply_chat_template([each], tokenize=False, add_generation_prompt=True) for each in messages]
    images = pictures
    before = "without process_vision_info, which needs torchvision and qwen-vl-utils and would change no image"
    # qwen_vl_utils imports torchvision without saying so. Without either the images are taken as they are: drawn in a
    # size that process_vision_info leaves alone.
    with suppress(ModuleNotFoundError):
        if is_torchvision_available():
            from qwen_vl_utils import process_vision_info

            (images, _), took_us = _timed(lambda: process_vision_info([[each] for each in messages]))
            before = f"process_vision_info before it {took_us / 1e3:.2g} ms"
    inputs, took_us = _timed(lambda: processor(text=list(texts), images=images, padding=True, return_tensors="pt"))
    return inputs, f"{took_us / 1e3:.2g} ms (median) for all prompts and images on the CPU, {before}"


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
