"""Which size of a workload is built here, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tracekit.errors import DoesNotFitError
from tracekit.model.workload import THEIR_SIZE, Request, WorkloadInfo
from tracekit.workloads.sizes import choose_size, weights_fit
from tracekit.workloads.unlisted import weights_of


def choose_request_size(info: WorkloadInfo, request: Request, device: str, free_bytes: int) -> tuple[str, str]:
    """The size to build and why. Real weights are a size of the list if they are its own, else what their files say."""
    weights = weights_of(request)
    if not weights:
        return choose_size(info, request, device, free_bytes)
    if "download" in info.takes:
        # What the configuration says; the weights may be another's.
        size = next(iter(info.sizes))
        return size, _listed_weights(info, size, request, device, free_bytes)
    for size, known in info.checkpoints.items():
        if known == weights:
            return size, _listed_weights(info, size, request, device, free_bytes)
    from tracekit.workloads.hub_files import count_saved

    return THEIR_SIZE, weights_fit(weights, count_saved(weights), device, free_bytes, request.dtype)


def _listed_weights(info: WorkloadInfo, size: str, request: Request, device: str, free_bytes: int) -> str:
    """Why real weights of a size that is known are taken. Raises TracekitError where they do not fit."""
    weights = weights_of(request)
    assert weights is not None
    if Path(weights).is_dir():
        # What a folder holds is for its owner to know.
        return f"the weights of {weights}"
    try:
        choose_size(info, replace(request, size=size), device, free_bytes)
    except DoesNotFitError as error:
        raise DoesNotFitError(f"{error}; or leave --pretrained out") from None
    return f"the weights of {weights}"
