"""Where does a file of a model's repository lie on this machine, and what do Hugging Face's many errors mean?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from tracekit.errors import TracekitError

REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
WITHOUT = "pass a folder that holds its configuration"


def find_file(source: str, names: Sequence[str], *, download: bool) -> Path:
    """The first of these files that `source` has: a folder, the file itself, or a repository's name on Hugging Face.

    A repository's is looked for in the local cache, and fetched only where `download` allows it. Raises TracekitError
    when there is none.
    """
    here = Path(source).expanduser()
    if here.is_dir():
        return _in_folder(here, names)
    if here.is_file():
        return here
    if not REPOSITORY.fullmatch(source) or source.startswith("."):
        raise TracekitError(f"{source} is neither a folder here nor a repository's name (owner/model)")
    cached = [found for name in names if isinstance(found := try_to_load_from_cache(source, name), str)]
    if cached:
        return Path(cached[0])
    if not download:
        raise TracekitError(
            f"the configuration of {source} is not in the local Hugging Face cache and nothing is downloaded unasked:"
            " pass --download to fetch it (a few kB), or the folder that holds it instead of the name"
        )
    return _fetched(source, names)


def find_optional(source: str, name: str, *, download: bool) -> Path | None:
    """The same for a file that not every repository has: None where it is not here and may not be, or cannot be,
    fetched."""
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


def _in_folder(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise TracekitError(f"{folder} holds no {' and no '.join(names)}: pass the folder of a saved model")


def _fetched(source: str, names: Sequence[str]) -> Path:
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
    raise TracekitError(f"{source} holds no {' and no '.join(names)}: is it a model's repository?")


def explain(source: str, error: BaseException, instead: str) -> str:
    """What is wrong with `source` and what to do. `instead` is what to do without it, if nothing else helps."""
    if _was_caused_by(error, GatedRepoError):
        return (
            f"{source} is gated: accept its licence on its Hugging Face page (https://huggingface.co/{source}), then"
            f" `hf auth login` (or {instead})"
        )
    if _was_caused_by(error, RepositoryNotFoundError):
        return f"{source} is no repository that you can read: check the name, or `hf auth login`"
    if _was_caused_by(error, OfflineModeIsEnabled):
        return f"{source} is not in the cache and HF_HUB_OFFLINE is set: unset it, or pass a folder"
    if _was_caused_by(error, LocalEntryNotFoundError):
        return f"{source} is not in the cache, and huggingface.co cannot be reached: check the network or pass a folder"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    reason = lines[0].partition(" (")[0].rstrip(".")
    return f"cannot load {source}: {reason}; check the network or pass a folder, or {instead}"


def _was_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False
