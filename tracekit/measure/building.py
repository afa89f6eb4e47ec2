"""Before a model is built: which size of it, that its libraries are quiet, and that torch can keep what it compiles."""

import os
import tempfile
from pathlib import Path

from msgspec.structs import replace

from tracekit.errors import DoesNotFitError, TracekitError
from tracekit.model.workload import THEIR_SIZE, Request, WorkloadInfo
from tracekit.workloads.sizes import choose_size, weights_fit
from tracekit.workloads.unlisted import weights_of


def quiet_libraries() -> None:
    """Libraries imported after this keep chatter and progress bars off the terminal, unless the user has set them."""
    for name, value in {
        "TRANSFORMERS_VERBOSITY": "error",
        "DIFFUSERS_VERBOSITY": "error",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }.items():
        os.environ.setdefault(name, value)


def check_cache() -> None:
    """Raises TracekitError where the folder that the user has chosen for Inductor's cache cannot be written to: torch
    makes it as soon as libraries of models load parts of it, also for a form that is not compiled."""
    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if not folder:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TracekitError(
            f"Inductor cannot write its cache to {folder} ({error.strerror}): set TORCHINDUCTOR_CACHE_DIR to a writable"
            " folder"
        ) from None


def choose_request_size(info: WorkloadInfo, request: Request, device: str, free_bytes: int) -> tuple[str, str]:
    """The size to build and why. Real weights are a size of the list if they are its own, else what their files say.

    Raises DoesNotFitError where that needs more memory than there is.
    """
    weights = weights_of(request)
    if not weights:
        return choose_size(info, request, device, free_bytes)
    if "download" in info.takes:
        # What the configuration says; the weights may be another's.
        size: str | None = next(iter(info.sizes))
    else:
        size = next((each for each, known in info.checkpoints.items() if known == weights), None)
    if size is None:
        from tracekit.workloads.hub_files import count_saved

        return THEIR_SIZE, weights_fit(weights, count_saved(weights), device, free_bytes, request.dtype)
    # What a folder holds is for its owner to know.
    if not Path(weights).is_dir():
        try:
            choose_size(info, replace(request, size=size), device, free_bytes)
        except DoesNotFitError as error:
            raise DoesNotFitError(f"{error}; or leave --pretrained out") from None
    return size, f"the weights of {weights}"
