"""FLUX.1, the whole pipeline: tokenise, encode, denoise, decode.

Architecture figures are those of the published configuration files of black-forest-labs/FLUX.1-dev; what differs in
black-forest-labs/FLUX.1-schnell is as in its own, and it is called as its model card and diffusers' documentation say:
guidance 0, 4 steps, 256 tokens of T5 at most.

Over ranks each has a part of the transformer's tokens, by diffusers' context parallelism, and all of them meet in
attention. Ulysses deals out heads for it, all-to-all; ring passes keys and values on.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel
from msgspec import Struct
from msgspec.structs import replace
from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, Parallel, Settings
from tracekit.model.workload import DEFAULT_PROMPT, BuiltWorkload, CompileTarget, Request, WorkloadInfo
from tracekit.shell import joined
from tracekit.workloads import inputs
from tracekit.workloads.building import count_parameters, fill_in, load_pretrained, parallel_here, random_weights
from tracekit.workloads.registry import FLUX, FLUX_SCHNELL
from tracekit.workloads.scopes import repeated_blocks

#: The VAE shrinks by 8, and the transformer packs 2x2 latents into a token.
PIXELS_OF_TOKEN = 16
#: The pipeline's parts that hold weights.
MODULES = ("text_encoder", "text_encoder_2", "transformer", "vae")
#: Ring adds up what each part of the keys gives and needs the softmax's sums for it, which PyTorch's own choice of an
#: attention kernel does not return.
RING_ATTENTION = "_native_cudnn"


class Architecture(Struct, frozen=True):
    """What differs between the sizes: arguments of each part, and of a call. The rest is as published."""

    transformer: dict[str, Any]
    t5: dict[str, int]
    clip: dict[str, int]
    vae_channels: tuple[int, int, int, int]
    pixels: int
    denoising_steps: int
    text_tokens: int


PUBLISHED = Architecture(
    transformer={"num_layers": 19, "num_single_layers": 38, "num_attention_heads": 24, "axes_dims_rope": (16, 56, 56)},
    t5={"d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_layers": 24, "num_heads": 64},
    clip={"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12},
    vae_channels=(128, 256, 512, 512),
    pixels=512,
    denoising_steps=4,
    text_tokens=512,
)
SMALL = replace(
    PUBLISHED,
    transformer={**PUBLISHED.transformer, "num_layers": 4, "num_single_layers": 8},
    t5={**PUBLISHED.t5, "num_layers": 4},
)
TINY = Architecture(
    transformer={"num_layers": 1, "num_single_layers": 2, "num_attention_heads": 2, "axes_dims_rope": (8, 12, 12)},
    t5={"d_model": 64, "d_kv": 32, "d_ff": 128, "num_layers": 2, "num_heads": 2},
    clip={"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2},
    vae_channels=(32, 32, 64, 64),
    pixels=128,
    denoising_steps=2,
    text_tokens=64,
)
ARCHITECTURES = {"full": PUBLISHED, "small": SMALL, "tiny": TINY}


class Variant(Struct, frozen=True):
    """What differs between the published models. `guided`: the transformer embeds the guidance scale, and the
    scheduler's noise levels shift with the size of the image too."""

    info: WorkloadInfo
    architectures: dict[str, Architecture]
    guided: bool
    guidance_scale: float
    shift: float


FEWER_TOKENS = {size: replace(each, text_tokens=min(each.text_tokens, 256)) for size, each in ARCHITECTURES.items()}
VARIANTS = {
    "flux": Variant(FLUX, ARCHITECTURES, guided=True, guidance_scale=3.5, shift=3.0),
    "flux-schnell": Variant(FLUX_SCHNELL, FEWER_TOKENS, guided=False, guidance_scale=0.0, shift=1.0),
}


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The pipeline on `device`. Raises TracekitError for pretrained weights that cannot be had."""
    variant = VARIANTS[request.workload]
    architecture = variant.architectures[size]
    parallel = parallel_here(variant.info, request, device)
    settings = replace(_settings(variant, request, size, device), parallel=parallel)
    if parallel:
        if request.fullgraph is None:
            # Older versions of torch do not trace the all-gather after the last block.
            settings = replace(settings, fullgraph=False)
        assert settings.height and settings.width
        image_tokens = (settings.height // PIXELS_OF_TOKEN) * (settings.width // PIXELS_OF_TOKEN)
        heads = architecture.transformer["num_attention_heads"]
        check_split(settings, heads, (image_tokens, architecture.text_tokens))
    dtype: torch.dtype = getattr(torch, settings.dtype)
    if request.pretrained:
        progress.detail(f"loading {request.pretrained}")
        pipeline = load_pretrained(FluxPipeline, request.pretrained, dtype).to(device)
        if pipeline.transformer.config.guidance_embeds != variant.guided:
            # Weights of the other published model are called otherwise.
            other = "flux-schnell" if variant.guided else "flux"
            typed = joined(("tracekit", "profile", other, "--pretrained", request.pretrained))
            raise TracekitError(f"{request.pretrained} is a model of {other}: pass {typed}")
    else:
        pipeline = _random_pipeline(variant, architecture, dtype, device, request.seed, progress)
    pipeline.set_progress_bar_config(disable=True)
    if parallel:
        _spread(pipeline.transformer, parallel)

    def call_at(other: Request) -> Callable[[], object]:
        asked = _settings(variant, other, size, device)
        return partial(_call, pipeline, asked, variant.guidance_scale, architecture.text_tokens)

    note = (
        f"One call generates images of {settings.height}x{settings.width}, batch size {settings.batch_size}, in"
        f" {settings.steps} denoising steps, from prompt to image tensor on the device (no conversion to PIL)."
    )
    if parallel:
        note += f" Each rank has a part of the transformer's tokens ({parallel}), and encoders and VAE whole."
    random = "Random weights and generated tokenizers: the image is noise, kernels and shapes are the model's."
    compiled = {"all": tuple(_parts(pipeline)), "regional": ("transformer",)}.get(settings.scope, (settings.scope,))
    return BuiltWorkload(
        info=variant.info,
        settings=settings,
        call=call_at(request),
        call_at=call_at,
        targets=_targets(pipeline, settings.scope),
        components=tuple(
            Component(name, count_parameters(*(target.module for target in targets)), name in compiled)
            for name, targets in _parts(pipeline).items()
        ),
        notes=(note,) if request.pretrained else (note, random),
        modules=tuple((name, getattr(pipeline, name)) for name in MODULES),
        targets_of=partial(_targets, pipeline),
    )


def _settings(variant: Variant, request: Request, size: str, device: str) -> Settings:
    architecture = variant.architectures[size]
    return replace(
        fill_in(variant.info, request, size, device),
        height=request.height or architecture.pixels,
        width=request.width or architecture.pixels,
        steps=request.steps or architecture.denoising_steps,
        prompt=request.prompt or DEFAULT_PROMPT,
    )


def _random_pipeline(
    variant: Variant, architecture: Architecture, dtype: torch.dtype, device: str, seed: int, progress: Progress
) -> FluxPipeline:
    with random_weights(dtype, device, seed):
        progress.detail("transformer")
        transformer = FluxTransformer2DModel(
            **architecture.transformer,
            attention_head_dim=sum(architecture.transformer["axes_dims_rope"]),
            joint_attention_dim=architecture.t5["d_model"],
            pooled_projection_dim=architecture.clip["hidden_size"],
            guidance_embeds=variant.guided,
        )
        progress.detail("T5-XXL text encoder")
        t5 = T5EncoderModel(
            T5Config(**architecture.t5, feed_forward_proj="gated-gelu", vocab_size=32128, tie_word_embeddings=False)
        )
        progress.detail("CLIP-L text encoder")
        clip = CLIPTextModel(
            CLIPTextConfig(
                **architecture.clip,
                vocab_size=inputs.CLIP_VOCABULARY,
                max_position_embeddings=inputs.CLIP_LENGTH,
                projection_dim=architecture.clip["hidden_size"],
                hidden_act="quick_gelu",
            )
        )
        progress.detail("VAE")
        vae = AutoencoderKL(
            block_out_channels=architecture.vae_channels,
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            layers_per_block=2,
            latent_channels=16,
            norm_num_groups=32,
            sample_size=1024,
            scaling_factor=0.3611,
            shift_factor=0.1159,
            use_quant_conv=False,
            use_post_quant_conv=False,
        )
    for module in (transformer, t5, clip, vae):
        module.requires_grad_(False).eval()
    return FluxPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(
            shift=variant.shift,
            use_dynamic_shifting=variant.guided,
            base_shift=0.5,
            max_shift=1.15,
            max_image_seq_len=4096,
        ),
        vae=vae,
        text_encoder=clip,
        tokenizer=inputs.clip_tokenizer(),
        text_encoder_2=t5,
        tokenizer_2=inputs.t5_tokenizer(),
        transformer=transformer,
    )


def _call(pipeline: FluxPipeline, settings: Settings, guidance_scale: float, text_tokens: int) -> object:
    return pipeline(
        prompt=[settings.prompt] * settings.batch_size,
        height=settings.height,
        width=settings.width,
        num_inference_steps=settings.steps,
        guidance_scale=guidance_scale,
        max_sequence_length=text_tokens,
        # The same noise in every call of every form.
        generator=torch.Generator(settings.device).manual_seed(settings.seed),
        output_type="pt",
        return_dict=False,
    )[0]


def _parts(pipeline: FluxPipeline) -> dict[str, tuple[CompileTarget, ...]]:
    """The parts that a scope may name, each compiled whole."""
    return {
        "transformer": (CompileTarget("transformer", pipeline.transformer),),
        # The pipeline calls vae.decode, never vae itself.
        "vae": (CompileTarget("vae", pipeline.vae, "decode"),),
        "text-encoders": (
            CompileTarget("text_encoder", pipeline.text_encoder),
            CompileTarget("text_encoder_2", pipeline.text_encoder_2),
        ),
    }


def _targets(pipeline: FluxPipeline, scope: str) -> tuple[CompileTarget, ...]:
    if scope == "all":
        return tuple(target for targets in _parts(pipeline).values() for target in targets)
    if scope == "regional":
        blocks = repeated_blocks([("transformer", pipeline.transformer)])
        return tuple(CompileTarget(name, block) for name, block in blocks.items())
    return _parts(pipeline)[scope]


def check_split(settings: Settings, heads: int, tokens: tuple[int, ...]) -> None:
    """Raises TracekitError where heads or tokens (of images, of prompts) cannot be dealt out evenly, and where a device
    or a data type has no such attention."""
    parallel, ranks = settings.parallel, dist.get_world_size()
    dealt = {"ulysses": (heads, *tokens), "ring": tokens}[str(parallel)]
    if any(each % ranks for each in dealt):
        of_heads = f"{heads} heads and " if parallel == "ulysses" else ""
        counts = " + ".join(map(str, tokens))
        raise TracekitError(
            f"--parallel {parallel} splits {of_heads}{counts} tokens: pass an --nproc that divides them"
        )
    if parallel == "ring" and settings.device == "cpu":
        raise TracekitError("--parallel ring runs on GPUs alone, by cuDNN's attention: pass --parallel ulysses")
    if parallel == "ring" and settings.dtype == "float32":
        raise TracekitError("--parallel ring has no attention in float32: pass --dtype bfloat16 or float16")


def _spread(transformer: Any, parallel: Parallel) -> None:
    """From now on the transformer's calls are those of one rank of the job. A job of one rank is left as it is."""
    ranks = dist.get_world_size()
    if ranks == 1:
        return
    try:
        from diffusers import ContextParallelConfig
    except ImportError:
        raise TracekitError(
            "this diffusers has no context parallelism: pip install -c constraints.txt '.[profile]' in tracekit's"
            " checkout"
        ) from None
    if parallel == "ring":
        transformer.set_attention_backend(RING_ATTENTION)
    # diffusers numbers devices modulo how many accelerators there are: none where the device is a CPU.
    count = max(1, torch.accelerator.device_count())
    with patch.object(torch.accelerator, "device_count", return_value=count):
        transformer.enable_parallelism(config=ContextParallelConfig(**{f"{parallel}_degree": ranks}))
