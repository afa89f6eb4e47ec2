"""One denoising step of a transformer or UNet of diffusers: rows of the table, and any known one by its configuration
(`diffusers:ORG/NAME`, `diffusers:FOLDER`)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import diffusers

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo
from tracekit.workloads.building import load_pretrained
from tracekit.workloads.configured import Configured, build_configured, look_into_configuration
from tracekit.workloads.diffusers_inputs import KNOWN, draw_step
from tracekit.workloads.hub_files import MODEL, PIPELINE, find_file, find_optional
from tracekit.workloads.one_forward import Family, build_one_forward
from tracekit.workloads.one_forward_table import ROWS, OneForward
from tracekit.workloads.unlisted import find_on_hub, may_download, source_of

#: What a pipeline calls the part that denoises.
DENOISERS = ("transformer", "unet")
WAY_OUT = "profile it as your own model: tracekit profile my_model.py:build"


def look_into(info: WorkloadInfo, request: Request) -> WorkloadInfo:
    """The workload with what its configuration tells. Raises TracekitError where that cannot be had or used."""
    return look_into_configuration(info, request, _read)


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The denoiser and its inputs on `device`, ready to be called. `size` is already chosen."""
    if request.workload in ROWS:
        return build_one_forward(FAMILY, request, size, device, progress)
    info = find_on_hub(request.workload)
    assert info is not None
    return build_configured(info, _read, request, size, device, progress)


def _draw_row(row: OneForward, model: Any, sizes: Mapping[str, int], count: int, seed: int) -> dict[str, Any]:
    request = Request(row.name, batch_size=count, seed=seed, height=sizes["height"], width=sizes["width"])
    return draw_step(KNOWN[row.kind], model.config, request, None).arguments


FAMILY = Family(lambda row, size: getattr(diffusers, row.kind)(**row.figures_at(size)), _draw_row)


def _read(request: Request, size: str) -> Configured | None:
    source, download = source_of(request.workload), may_download(request)
    found = find_file(source, (PIPELINE, MODEL), download=download)
    part, shrink = None, None
    said = _json(found, source)
    if found.name == PIPELINE:
        part = next((each for each in DENOISERS if [*(said.get(each) or ())][:1] == ["diffusers"]), None)
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
            f"{source} is no model of diffusers (its {MODEL} names no _class_name): one of transformers is hf:{source}"
        )
    kind = getattr(diffusers, name, None)
    if kind is None:
        raise TracekitError(f"diffusers {diffusers.__version__} has no {name}: a newer one may; or {WAY_OUT}")
    if name not in KNOWN:
        raise TracekitError(f"nobody taught tracekit what a {name} takes: known are {', '.join(KNOWN)}; {WAY_OUT}")
    parameters = inspect.signature(kind.__init__).parameters.values()
    defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
    known, config = KNOWN[kind.__name__], {**defaults, **said}
    guided = "Each image is denoised twice in a step: with its prompt and without, as its pipeline does for guidance."
    return Configured(
        kind=kind,
        make=lambda: kind.from_config(said),
        load=lambda weights, dtype: load_pretrained(kind, weights, dtype, **({"subfolder": part} if part else {})),
        draw=lambda asked: draw_step(known, config, asked, shrink),
        remarks=(
            "The denoiser alone runs: prompts are random embeddings, and no image is decoded.",
            *((guided,) if known.guided else ()),
        ),
    )


def _json(path: Path, source: str) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text())
    except ValueError as error:
        raise TracekitError(f"{path.name} of {source} is no JSON ({error}): fetch or write it again") from None
    if not isinstance(said, dict):
        raise TracekitError(f"{path.name} of {source} is no configuration: it holds no names and values")
    return said
