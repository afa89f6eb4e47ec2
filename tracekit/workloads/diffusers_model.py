"""One denoising step of a transformer or UNet of diffusers: rows of the table, and any known one by its configuration
(`diffusers:ORG/NAME`, `diffusers:FOLDER`)."""

import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import diffusers
import torch
from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.workload import BuiltWorkload, Request
from tracekit.workloads.building import load_pretrained
from tracekit.workloads.configured import Configured, Drawn, build_configured, look_into_configuration
from tracekit.workloads.hub_files import MODEL, PIPELINE, find_file, find_optional
from tracekit.workloads.one_forward import build_one_forward
from tracekit.workloads.one_forward_table import ROWS, OneForward
from tracekit.workloads.unlisted import may_download, source_of

Config = Mapping[str, Any]

#: SDXL tells its UNet an image's size, crop and target: six numbers.
TIME_IDS = 6
#: What configurations call the width of a prompt's embeddings: of several the first that is set.
TEXT_WIDTHS = ("joint_attention_dim", "caption_channels", "cross_attention_dim")
#: Wan makes 81 frames of a video, four to a latent after the first.
VIDEO_LATENTS = 21


class Step(Struct, frozen=True):
    """Sizes of one denoising step: so many latents of `height` times `width`, prompts of so many tokens."""

    count: int
    height: int
    width: int
    tokens: int
    generator: torch.Generator

    def noise(self, *shape: int) -> torch.Tensor:
        return torch.randn(self.count, *shape, generator=self.generator)

    def times(self, value: float) -> torch.Tensor:
        return torch.full((self.count,), value)

    def labels(self, classes: int) -> torch.Tensor:
        return torch.randint(classes, (self.count,), generator=self.generator)


class Known(Struct, frozen=True):
    """How a class is fed. A latent stands for `shrink` times `shrink` pixels, or as the pipeline's own VAE says; sides
    of an image are multiples of `pack` latents. `pixels` are those of an image where the configuration has no
    `sample_size`. `tokens` is 0 where no prompt is read. With guidance each image is denoised twice a step, with its
    prompt and without."""

    draw: Callable[[Config, Step], dict[str, Any]]
    tokens: int
    guided: bool
    shrink: int = 8
    pack: int = 2
    pixels: tuple[int, int] = (1024, 1024)


def draw_step(known: Known, config: Config, request: Request, shrink: int | None) -> Drawn:
    """The arguments of one step, on the CPU by the seed. `shrink` is what the pipeline's own VAE says."""
    if request.seq_length and not known.tokens:
        raise TracekitError(f"{request.workload} takes no prompt: leave --seq-length out")
    shrink = shrink or known.shrink
    sides = config.get("sample_size")
    sides = (sides, sides) if isinstance(sides, int) else sides
    published = (shrink * sides[0], shrink * sides[1]) if sides else known.pixels
    height, width = request.height or published[0], request.width or published[1]
    multiple = shrink * known.pack
    for option, asked in (("--height", height), ("--width", width)):
        if asked % multiple:
            sizes = f"image sizes of {request.workload} must be multiples of {multiple} pixels"
            raise TracekitError(f"{option} {asked}: {sizes}")
    tokens = request.seq_length or known.tokens
    count = (2 if known.guided else 1) * request.batch_size
    step = Step(count, height // shrink, width // shrink, tokens, torch.Generator().manual_seed(request.seed))
    return Drawn(known.draw(config, step), height, width, tokens or None)


def _unet(config: Config, step: Step) -> dict[str, Any]:
    made: dict[str, Any] = {
        "sample": step.noise(config["in_channels"], step.height, step.width),
        "timestep": torch.tensor(500),
    }
    if config["num_class_embeds"]:
        made["class_labels"] = step.labels(config["num_class_embeds"])
    if not step.tokens:
        return made
    across = config["encoder_hid_dim"] or config["cross_attention_dim"]
    made["encoder_hidden_states"] = step.noise(step.tokens, across if isinstance(across, int) else across[0])
    if config["addition_embed_type"] == "text_time":
        pooled = config["projection_class_embeddings_input_dim"] - TIME_IDS * config["addition_time_embed_dim"]
        pixels = 8.0 * torch.tensor([step.height, step.width, 0, 0, step.height, step.width])
        made["added_cond_kwargs"] = {
            "text_embeds": step.noise(pooled),
            "time_ids": pixels.expand(step.count, TIME_IDS).clone(),
        }
    return made


def _flux(config: Config, step: Step) -> dict[str, Any]:
    rows, columns, axes = step.height // 2, step.width // 2, len(config["axes_dims_rope"])
    places = torch.zeros(rows, columns, axes)
    places[..., 1] += torch.arange(rows)[:, None]
    places[..., 2] += torch.arange(columns)
    made: dict[str, Any] = {
        "hidden_states": step.noise(rows * columns, config["in_channels"]),
        "encoder_hidden_states": step.noise(step.tokens, config["joint_attention_dim"]),
        "pooled_projections": step.noise(config["pooled_projection_dim"]),
        "timestep": step.times(0.5),
        "img_ids": places.flatten(0, 1),
        "txt_ids": torch.zeros(step.tokens, axes),
    }
    return {**made, "guidance": step.times(3.5)} if config["guidance_embeds"] else made


def _transformer(config: Config, step: Step, timestep: float = 500.0) -> dict[str, Any]:
    """What most take: a prompt's embeddings, or a class where they read none."""
    made: dict[str, Any] = {"hidden_states": step.noise(config["in_channels"], step.height, step.width)}
    if step.tokens:
        width = next(config[name] for name in TEXT_WIDTHS if config.get(name))
        made["encoder_hidden_states"] = step.noise(step.tokens, width)
    if config.get("pooled_projection_dim"):
        made["pooled_projections"] = step.noise(config["pooled_projection_dim"])
    made["timestep"] = step.times(timestep)
    if not step.tokens:
        made["class_labels"] = step.labels(config["num_embeds_ada_norm"])
    if config.get("guidance_embeds"):
        made["guidance"] = step.times(4.5)
    return made


def _pixart(config: Config, step: Step) -> dict[str, Any]:
    made = _transformer(config, step)
    # As the class itself decides where its configuration does not.
    extra = config["use_additional_conditions"]
    if config["sample_size"] == 128 if extra is None else extra:
        pixels = 8.0 * torch.tensor([step.height, step.width])
        made["added_cond_kwargs"] = {
            "resolution": pixels.expand(step.count, 2).clone(),
            "aspect_ratio": torch.full((step.count, 1), step.height / step.width),
        }
    return made


def _wan(config: Config, step: Step) -> dict[str, Any]:
    return {
        "hidden_states": step.noise(config["in_channels"], VIDEO_LATENTS, step.height, step.width),
        "timestep": step.times(500.0),
        "encoder_hidden_states": step.noise(step.tokens, config["text_dim"]),
    }


#: The classes that are known, by their names in diffusers; figures are those of the pipelines that they belong to.
KNOWN: Mapping[str, Known] = {
    "UNet2DConditionModel": Known(_unet, tokens=77, guided=True, pack=1, pixels=(512, 512)),
    "UNet2DModel": Known(_unet, tokens=0, guided=False, shrink=1, pack=1, pixels=(256, 256)),
    "FluxTransformer2DModel": Known(_flux, tokens=512, guided=False),
    "SD3Transformer2DModel": Known(_transformer, tokens=333, guided=True),
    "PixArtTransformer2DModel": Known(_pixart, tokens=120, guided=True),
    "SanaTransformer2DModel": Known(_transformer, tokens=300, guided=True, shrink=32, pack=1),
    "AuraFlowTransformer2DModel": Known(partial(_transformer, timestep=0.5), tokens=256, guided=True),
    "DiTTransformer2DModel": Known(_transformer, tokens=0, guided=True, pixels=(256, 256)),
    "WanTransformer3DModel": Known(_wan, tokens=512, guided=False, pixels=(480, 832)),
}


#: What a pipeline calls the part that denoises.
DENOISERS = ("transformer", "unet")
WAY_OUT = "profile your own model: tracekit profile my_model.py:build"


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The denoiser and its inputs on `device`, ready to be called. `size` is already chosen."""
    if request.workload in ROWS:
        return build_one_forward(_make, draw, request, size, device, progress)
    return build_configured(_read, request, size, device, progress)


def _make(row: OneForward, size: str) -> Any:
    return getattr(diffusers, row.kind)(**row.figures_at(size))


def draw(row: OneForward, model: Any, sizes: Mapping[str, int], count: int, seed: int) -> dict[str, Any]:
    """The arguments of a row's step."""
    request = Request(row.name, batch_size=count, seed=seed, height=sizes["height"], width=sizes["width"])
    return draw_step(KNOWN[row.kind], model.config, request, None).arguments


def _read(request: Request, size: str) -> Configured | None:
    source, download = source_of(request.workload), may_download(request)
    found = find_file(source, (PIPELINE, MODEL), download=download)
    part, shrink = None, None
    said = _json(found, source)
    if found.name == PIPELINE:
        lists = {name: each for name, each in said.items() if isinstance(each, list)}
        part = next((each for each in DENOISERS if lists.get(each, [])[:1] == ["diffusers"]), None)
        if part is None:
            pipeline = said.get("_class_name", "the pipeline")
            raise TracekitError(f"{pipeline} of {source} has no {' and no '.join(DENOISERS)} of diffusers: {WAY_OUT}")
        said = _json(find_file(source, (f"{part}/{MODEL}",), download=download), source)
        vae = find_optional(source, f"vae/{MODEL}", download=download)
        blocks = json.loads(vae.read_text()).get("block_out_channels") if vae else None
        # Pixels of an image to a latent, along one side.
        shrink = 2 ** (len(blocks) - 1) if blocks else None
    name = said.get("_class_name")
    if name is None:
        raise TracekitError(
            f"{source} is not a model of diffusers ({MODEL} has no _class_name): for transformers, pass hf:{source}"
        )
    kind = getattr(diffusers, name, None)
    if kind is None:
        raise TracekitError(f"diffusers {diffusers.__version__} has no {name}: install a newer diffusers, or {WAY_OUT}")
    if name not in KNOWN:
        raise TracekitError(f"tracekit does not know the inputs of {name}, only of {', '.join(KNOWN)}; {WAY_OUT}")
    parameters = inspect.signature(kind.__init__).parameters.values()
    defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
    known, config = KNOWN[kind.__name__], {**defaults, **said}
    guided = "Guidance: each step denoises every image twice, with and without its prompt."
    return Configured(
        kind=kind,
        make=lambda: kind.from_config(said),
        load=lambda weights, dtype: load_pretrained(kind, weights, dtype, **({"subfolder": part} if part else {})),
        draw=lambda asked: draw_step(known, config, asked, shrink),
        remarks=(
            "Only the denoiser runs: prompts are random embeddings, no image is decoded.",
            *((guided,) if known.guided else ()),
        ),
    )


def _json(path: Path, source: str) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text())
    except ValueError as error:
        raise TracekitError(f"{path.name} of {source} is not valid JSON ({error}): fetch or write it again") from None
    if not isinstance(said, dict):
        raise TracekitError(f"{path.name} of {source} is not a configuration: it is not a JSON object")
    return said


look_into = partial(look_into_configuration, _read)
