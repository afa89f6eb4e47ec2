"""Any model on Hugging Face, or of a folder, as a line of the list: `hf:ORG/NAME`, `diffusers:ORG/NAME`."""

from __future__ import annotations

from dataclasses import replace

from tracekit.errors import TracekitError
from tracekit.model.option import OWN_WEIGHTS
from tracekit.model.workload import Request, WorkloadInfo

HF = "hf:"
DIFFUSERS = "diffusers:"

FULL = "as its configuration says"

ANY_TRANSFORMERS = WorkloadInfo(
    name="hf:ORG/NAME",
    title="any model of transformers by its configuration: from the cache, a folder, or with --download",
    module="tracekit.workloads.hub",
    sizes={"full": FULL, "small": "its own width, 2 layers of each stack"},
    memory_gib={},
    scopes={"model": "all of it"},
    # Of most models nobody knows whether they are one graph.
    fullgraph=False,
    extra="profile",
    takes=("height", "width", "seq_length", "pretrained", "download"),
    inputs="token ids, images, spectra or waves, made here from the configuration",
)
ANY_DIFFUSERS = WorkloadInfo(
    name="diffusers:ORG/NAME",
    title="one denoising step of any known transformer or UNet of diffusers, by its configuration",
    module="tracekit.workloads.diffusers_model",
    sizes={"full": FULL},
    memory_gib={},
    scopes={"model": "all of it: the denoiser"},
    fullgraph=False,
    extra="profile",
    takes=("height", "width", "seq_length", "pretrained", "download"),
    inputs="latents and embeddings, drawn from the configuration",
)
ANY = {HF: ANY_TRANSFORMERS, DIFFUSERS: ANY_DIFFUSERS}


def find_on_hub(name: str) -> WorkloadInfo | None:
    """The workload that a name with such a prefix stands for; None for other names."""
    for prefix, info in ANY.items():
        if name.startswith(prefix):
            return replace(info, name=name, title=f"{_source(name)}: {info.title}")
    return None


def source_of(request: Request) -> str:
    """The folder, file or repository that the request's workload is made of."""
    return _source(request.workload)


def may_download(request: Request) -> bool:
    """Whoever asks for real weights asks for the configuration too."""
    return bool(request.download or request.pretrained)


def weights_of(request: Request) -> str | None:
    """Where real weights come from; None for random ones."""
    return source_of(request) if request.pretrained == OWN_WEIGHTS else request.pretrained


def _source(name: str) -> str:
    prefix, _, source = name.partition(":")
    if not source:
        example = "google/vit-base-patch16-224" if prefix == "hf" else "black-forest-labs/FLUX.1-dev"
        raise TracekitError(f"{name} names no model: write {name}{example}, or {name}FOLDER")
    return source
