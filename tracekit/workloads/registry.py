"""The list of workloads, what is known of each without torch; which one is meant by a name, and what builds it."""

import difflib
import importlib
from collections.abc import Callable

from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.interpreter import collector_paused
from tracekit.model.progress import Progress
from tracekit.model.workload import NO_BREAKS, BuiltWorkload, Request, WorkloadInfo
from tracekit.workloads.one_forward_table import ONE_FORWARD, ROWS
from tracekit.workloads.unlisted import DIFFUSERS, HF, find_on_hub, find_own, is_own

#: `build(request, size, device, progress)`, in a workload's own file.
Builder = Callable[[Request, str, str, Progress], BuiltWorkload]

FLUX = WorkloadInfo(
    name="flux",
    title="FLUX.1-dev text to image: diffusers.FluxPipeline with both text encoders, transformer and VAE",
    module="tracekit.workloads.flux",
    sizes={
        "full": "the published architecture: 19 + 38 blocks, T5-XXL, 512x512, 4 denoising steps",
        "small": "full width, 4 + 8 blocks, 4 T5 layers, 512x512, 4 denoising steps",
        "tiny": "64 wide, 1 + 2 blocks, for a CPU: 128x128, 2 denoising steps",
    },
    memory_gib={"full": 38.0, "small": 11.0, "tiny": 0.5},
    scopes={
        "transformer": "the denoiser, which takes most of the time",
        "vae": "the image decoder",
        "text-encoders": "CLIP-L and T5-XXL",
        "all": "transformer, vae and text-encoders",
        "regional": "each repeated transformer block by itself (shorter compile time)",
    },
    fullgraph=True,
    takes=("height", "width", "steps", "prompt", "pretrained", "nproc", "parallel"),
    parallel=("ulysses", "ring"),
    heads={"full": 24, "small": 24, "tiny": 2},
    # The VAE shrinks by 8 and the transformer packs 2x2 latents into a token; diffusers would round in silence.
    pixel_step=16,
    resizes=True,
    inputs="a prompt of 512 T5 and 77 CLIP tokens, noise for an image of 512x512",
    parameters=16_870_599_139,
    breaks=NO_BREAKS,
    checkpoints={"full": "black-forest-labs/FLUX.1-dev"},
    # One H200, eager: at most 32.1 GiB held at 512x512, 34.0 with batch 5, 33.8 at 1024x1024, 41.5 with batch 5.
    megapixel_gib=1.9,
)

FLUX_SCHNELL = replace(
    FLUX,
    name="flux-schnell",
    title="FLUX.1-schnell text to image: the pipeline of flux without guidance and without shifted noise levels",
    inputs="a prompt of 256 T5 and 77 CLIP tokens, noise for an image of 512x512",
    parameters=16_860_369_379,
    checkpoints={"full": "black-forest-labs/FLUX.1-schnell"},
)

QWEN_VL = WorkloadInfo(
    name="qwen2.5-vl",
    title="Qwen2.5-VL answering prompts about images: transformers.Qwen2_5_VLForConditionalGeneration.generate",
    module="tracekit.workloads.qwen_vl",
    sizes={
        "7b": "the published 7B: 28 layers, 3584 wide, 32 vision blocks; images of 448x448, 128 new tokens",
        "3b": "the published 3B: 36 layers, 2048 wide, 32 vision blocks; images of 448x448, 128 new tokens",
        "small": "the 3B's width, 4 layers and 4 vision blocks; images of 448x448, 32 new tokens",
        "tiny": "64 wide, 2 layers and 2 vision blocks, for a CPU; images of 56x56, 4 new tokens",
    },
    memory_gib={"7b": 20.0, "3b": 10.0, "small": 3.0, "tiny": 0.5},
    scopes={
        "model": "the whole model; has graph breaks in the vision tower (data-dependent windows)",
        "language": "the decoder",
        "visual": "the vision tower; has graph breaks",
        "regional": "each decoder layer and vision block by itself (shorter compile time)",
    },
    fullgraph=False,
    takes=("height", "width", "prompt", "pretrained", "max_new_tokens", "use_fast", "cache", "phase"),
    # Patches of 14 pixels, of which 2x2 become one token.
    pixel_step=28,
    inputs="an image of 448x448 and a prompt, 128 new tokens",
    parameters=8_292_166_656,
    breaks="in the vision tower (data-dependent windows)",
    checkpoints={"7b": "Qwen/Qwen2.5-VL-7B-Instruct", "3b": "Qwen/Qwen2.5-VL-3B-Instruct"},
    # One H200: the 3B took 7.19 GiB with one image of 448x448, of which 7.0 are weights.
    megapixel_gib=1.0,
)

CAUSAL_LM = WorkloadInfo(
    name="causal-lm",
    title="gemma-2b prefill: transformers.GemmaForCausalLM, one forward from token ids to logits; or decode",
    module="tracekit.workloads.causal_lm",
    sizes={
        "full": "the published architecture: 18 layers, 2048 wide, a vocabulary of 256,000; a prompt of 512 tokens",
        "small": "full width, 4 layers; a prompt of 512 tokens",
        "tiny": "64 wide, 2 layers, for a CPU; a prompt of 32 tokens",
    },
    memory_gib={"full": 8.0, "small": 4.0, "tiny": 0.5},
    scopes={"model": "the whole model", "regional": "each decoder layer by itself (shorter compile time)"},
    fullgraph=True,
    takes=("pretrained", "cache", "phase", "nproc", "parallel"),
    parallel=("tp",),
    heads={"full": 8, "small": 8, "tiny": 2},
    resizes=True,
    inputs="input_ids 1x512",
    parameters=2_506_172_416,
    breaks=NO_BREAKS,
    checkpoints={"full": "google/gemma-2b"},
)

GPT = WorkloadInfo(
    name="gpt",
    title="training step of a GPT-like decoder: forward, backward, AdamW",
    module="tracekit.workloads.gpt",
    sizes={
        "full": "24 layers, 2048 wide, a vocabulary of 50,304; 2,048 tokens",
        "small": "12 layers, 768 wide, a vocabulary of 50,304; 1,024 tokens",
        "tiny": "2 layers, 128 wide, for a CPU; 32 tokens",
    },
    # Weights, gradients and AdamW's two moments, and activations without checkpoints: an estimate.
    memory_gib={"full": 22.0, "small": 4.0, "tiny": 0.6},
    scopes={"model": "the whole model", "regional": "each block by itself (shorter compile time)"},
    fullgraph=True,
    takes=("seq_length", "nproc", "parallel", "checkpoint", "compile_order", "compiled_autograd"),
    inputs="token ids 1x2048",
    parameters=1_418_842_112,
    breaks=NO_BREAKS,
    needs_only_torch=True,
    parallel=("ddp", "fsdp2", "tp"),
    heads={"full": 32, "small": 12, "tiny": 2},
)

#: In the order they are listed.
WORKLOADS: tuple[WorkloadInfo, ...] = (FLUX, FLUX_SCHNELL, QWEN_VL, CAUSAL_LM, GPT, *(row.info for row in ONE_FORWARD))

#: By how names begin that others have for some workloads.
ALIASES = {
    "gemma": "causal-lm",
    "llama": "causal-lm",
    "gpt": "causal-lm",
    "qwen": "qwen2.5-vl",
    "stable-diffusion": "sdxl",
    "deeplab": "deeplabv3-mobilenet",
    "mobilenet": "deeplabv3-mobilenet",
}


def all_workloads() -> tuple[WorkloadInfo, ...]:
    """Every workload with a name of its own, in the order they are listed."""
    return WORKLOADS


def find(name: str) -> WorkloadInfo:
    """The workload of that name. Raises TracekitError with the nearest name."""
    by_name = {workload.name: workload for workload in WORKLOADS}
    found = by_name.get(name) or find_on_hub(name) or (find_own(name) if is_own(name) else None)
    if found is not None:
        return found
    asked = name.lower()
    alias = next((known for word, known in ALIASES.items() if asked.startswith(word)), None)
    if "/" in name:
        near = [f"{HF}{name}", f"{DIFFUSERS}{name}"]
    elif alias:
        near = [alias]
    else:
        begun = [known for known in by_name if known.startswith(asked) or asked.startswith(known)]
        near = [*begun, *difflib.get_close_matches(asked, by_name, n=1, cutoff=0.5)]
    # Each once.
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else f"pass one of {', '.join(by_name)}"
    raise TracekitError(f"no workload named {name!r}: {hint} (`tracekit workloads` lists all)")


def look_into(info: WorkloadInfo, request: Request) -> WorkloadInfo:
    """The workload with what only a configuration tells: sizes, memory, parameters. `load_builder` comes before. Raises
    TracekitError for a configuration that cannot be had, read or used."""
    ask = None if info.memory_gib else getattr(importlib.import_module(info.module), "look_into", None)
    found: WorkloadInfo = ask(info, request) if ask else info
    return found


def load_builder(info: WorkloadInfo) -> Builder:
    """The workload's `build`. Raises TracekitError when its packages are missing."""
    try:
        with collector_paused():
            module = importlib.import_module(info.module)
            for package in ROWS[info.name].needs if info.name in ROWS else ():
                importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("tracekit"):
            raise
        # Raised by hand, in a library, it has no name.
        raised = f"{type(error).__name__}: {' '.join(str(error).split())}"
        missing = f"the package {error.name}" if error.name else f"a package ({raised})"
        raise TracekitError(
            f"{info.name} needs {missing}, which is not installed: "
            f"pip install -c constraints.txt '.[{info.extra}]' in tracekit's checkout"
        ) from None
    builder: Builder = module.build
    return builder


def check_scope(info: WorkloadInfo, scope: str | None) -> str:
    """The scope to compile, by default the workload's first. Names of modules are checked where there is a model.
    Raises TracekitError for what is no list of names."""
    if scope is None:
        return next(iter(info.scopes))
    names = [*map(str.strip, scope.split(","))]
    if not all(names):
        raise TracekitError(f"--scope {scope!r} has an empty name: separate names by commas")
    return ",".join(dict.fromkeys(names))
