"""Files of a model's repository on this machine, the numbers in its weights, and what Hugging Face's errors mean."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from tracekit.errors import TracekitError

REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
WITHOUT = "pass a folder that holds its configuration"
#: What a folder of a pipeline, and of a model, holds; repositories in the cache are found by these.
PIPELINE, MODEL = "model_index.json", "config.json"
#: What the libraries call a model's weights; any other file of weights only where neither is there.
NAMES = ("model", "diffusion_pytorch_model")
#: A header of safetensors is shorter than this; what says otherwise is none.
LONGEST_HEADER_BYTES = 100 * 2**20


def find_file(source: str, names: Sequence[str], *, download: bool) -> Path:
    """The first of these files that `source` has: a folder, the file itself, or a repository's name on Hugging Face. A
    repository's is looked for in the local cache, and fetched only where `download` allows it. Raises TracekitError
    when there is none."""
    here = Path(source).expanduser()
    missing = f"{source} holds no {' and no '.join(names)}"
    if here.is_dir():
        inside = [here / name for name in names if (here / name).is_file()]
        if not inside:
            raise TracekitError(f"{missing}: pass the folder of a saved model")
        return inside[0]
    if here.is_file():
        return here
    if not REPOSITORY.fullmatch(source) or source.startswith("."):
        raise TracekitError(f"{source} is neither a folder nor a repository name (owner/model)")
    cached = [found for name in names if isinstance(found := try_to_load_from_cache(source, name), str)]
    if cached:
        return Path(cached[0])
    if not download:
        raise TracekitError(
            f"the configuration of {source} is not in the local Hugging Face cache: pass --download to fetch it (a few"
            " kB), or the folder that holds it"
        )
    for name in names:
        try:
            return Path(hf_hub_download(source, name))
        except LocalEntryNotFoundError as error:
            # It is an EntryNotFoundError too, but says that nobody could be asked.
            raise TracekitError(explain(source, error, WITHOUT)) from None
        except EntryNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise TracekitError(explain(source, error, WITHOUT)) from None
    raise TracekitError(f"{missing}: pass the repository of a model")


def find_optional(source: str, name: str, *, download: bool) -> Path | None:
    """The same for a file that not every repository has: None where it is not here and cannot be fetched."""
    here = Path(source).expanduser()
    if here.exists():
        beside = (here if here.is_dir() else here.parent) / name
        return beside if beside.is_file() else None
    cached = try_to_load_from_cache(source, name)
    if isinstance(cached, str):
        return Path(cached)
    # What the cache knows not to exist is no string either, and need not be asked for again.
    if cached is not None or not download:
        return None
    try:
        return Path(hf_hub_download(source, name))
    except EntryNotFoundError:
        return None
    except OSError as error:
        raise TracekitError(explain(source, error, WITHOUT)) from None


#: What errors of Hugging Face mean, the narrower ones first.
MEANINGS = {
    GatedRepoError: "{source} is gated: accept its licence on its Hugging Face page (https://huggingface.co/{source}),"
    " then `hf auth login` (or {instead})",
    RepositoryNotFoundError: "{source} does not exist or needs a login: check the name, or `hf auth login`",
    OfflineModeIsEnabled: "{source} is not in the cache and HF_HUB_OFFLINE is set: unset it, or pass a folder",
    LocalEntryNotFoundError: "{source} is not in the cache, and huggingface.co cannot be reached: check the network or"
    " pass a folder",
}


def explain(source: str, error: BaseException, instead: str) -> str:
    """What is wrong with `source` and what to do. `instead` is what to do without it, if nothing else helps."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    for kind, meaning in MEANINGS.items():
        if any(isinstance(each, kind) for each in causes):
            return meaning.format(source=source, instead=instead)
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__).partition(" (")[0].rstrip(".")
    return f"cannot load {source}: {reason}; check the network or pass a folder, or {instead}"


def count_saved(source: str) -> int | None:
    """The numbers that the weights of a folder or a cached repository hold; None where only loading them would tell."""
    folder = Path(source).expanduser()
    if not folder.is_dir():
        try:
            found = [try_to_load_from_cache(source, name) for name in (PIPELINE, MODEL)]
        except HFValidationError:
            return None
        cached = next((each for each in found if isinstance(each, str)), None)
        if cached is None:
            return None
        folder = Path(cached).parent
    # A pipeline's own folder may hold its models once more, in one file that is not read.
    folders = sorted(each for each in folder.iterdir() if each.is_dir()) if (folder / PIPELINE).is_file() else [folder]
    # 0 of a file that does not tell.
    counts = [_numbers(file) for each in folders for file in _files(each)]
    return sum(counts) if counts and all(counts) else None


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
