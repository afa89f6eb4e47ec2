"""How much do real weights weigh? Told by their files, before they are loaded."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

#: What a folder of a pipeline, and of a model, holds; repositories in the cache are found by these.
PIPELINE, MODEL = "model_index.json", "config.json"
#: What the libraries call a model's weights; any other file of weights only where neither is there.
NAMES = ("model", "diffusion_pytorch_model")
#: A header of safetensors is shorter than this; what says otherwise is none.
LONGEST_HEADER_BYTES = 100 * 2**20


def count_saved(source: str) -> int | None:
    """The numbers that the weights of a folder, or of a repository in the local cache, hold; None where they are not
    here, or only loading them would tell."""
    folder = _folder(source)
    if folder is None:
        return None
    # A pipeline's own folder may hold its models once more, in one file that is not read.
    folders = sorted(each for each in folder.iterdir() if each.is_dir()) if (folder / PIPELINE).is_file() else [folder]
    # 0 of a file that does not tell.
    counts = [_numbers(file) for each in folders for file in _files(each)]
    return sum(counts) if counts and all(counts) else None


def _folder(source: str) -> Path | None:
    here = Path(source).expanduser()
    if here.is_dir():
        return here
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = [try_to_load_from_cache(source, name) for name in (PIPELINE, MODEL)]
    except HFValidationError:
        return None
    return next((Path(each).parent for each in found if isinstance(each, str)), None)


def _files(folder: Path) -> list[Path]:
    for name in NAMES:
        index = folder / f"{name}.safetensors.index.json"
        if index.is_file():
            return sorted({folder / each for each in json.loads(index.read_text())["weight_map"].values()})
        if (folder / f"{name}.safetensors").is_file():
            return [folder / f"{name}.safetensors"]
    # Of pickles only loading tells what is in them.
    return sorted((*folder.glob("*.safetensors"), *folder.glob("*.bin")))


def _numbers(file: Path) -> int:
    """By the header of safetensors: its length in eight bytes, then JSON with every tensor's shape."""
    if file.suffix != ".safetensors" or not file.is_file():
        return 0
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if length > LONGEST_HEADER_BYTES:
            return 0
        try:
            header: dict[str, Any] = json.loads(opened.read(length))
        except ValueError:
            return 0
    return sum(math.prod(each["shape"]) for name, each in header.items() if name != "__metadata__")
