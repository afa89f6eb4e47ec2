"""Which size of a workload fits the machine?"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from dataclasses import fields

from tracekit.errors import DoesNotFitError, TracekitError
from tracekit.model.option import OPTIONS, OWN_WEIGHTS
from tracekit.model.run import Settings
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.numbers import parameter_count
from tracekit.workloads.unlisted import check_module, is_own

GIB = 2**30
#: Beside weights and activations: workspaces of libraries, what compiling tries out. A round figure.
ALLOWANCE_BYTES = GIB // 2
#: Of the weights, for activations that only a real call can tell. A guess.
UNKNOWN_ACTIVATIONS = 0.2
#: An estimate of what larger images need is off by less than this: what needs more than so many times what is free is
#: not tried.
CLEARLY_OVER = 1.5

#: What one workload has and another has not; options of a user's own model are checked by their `build()`.
NOT_EVERYWHERE = {each.name for each in OPTIONS if not each.everywhere and each.role != "own"}
#: The options that need more memory the greater they are, beside the batch, where a workload takes them.
SIZES_OF_A_CALL = tuple(each.name for each in OPTIONS if each.larger and not each.everywhere)


def check_request(info: WorkloadInfo, request: Request) -> None:
    """Raises TracekitError for an option or a size the workload has not, a size beside weights that bring their own,
    and an image size that it cannot make."""
    if request.options and "options" not in info.takes:
        raise TracekitError(f"{info.name} takes no options of its own: leave out {' '.join(request.options)}")
    given = (each.name for each in fields(request) if each.name in NOT_EVERYWHERE)
    asked = [name for name in given if getattr(request, name) is not None]
    refused = [_option(name) for name in asked if name not in info.takes]
    if refused:
        them = "it" if len(refused) == 1 else "them"
        raise TracekitError(f"{info.name} has no {' and no '.join(refused)}: leave {them} out")
    if "options" in info.takes and is_own(info.name):
        check_module(info.name)
    size, pretrained = request.size, request.pretrained
    if size != "auto" and size not in info.sizes:
        raise TracekitError(f"{info.name} has no size {size!r}: pass --size auto, {', '.join(info.sizes)}")
    if pretrained == OWN_WEIGHTS and "download" not in info.takes:
        known = " or ".join(info.checkpoints.values()) or "ID"
        raise TracekitError(f"say whose weights {info.name} is to have: --pretrained {known}, or a folder")
    if pretrained and size != "auto":
        raise TracekitError("real weights have a size of their own: leave --size out beside --pretrained")
    check_pixels(info, request, "--{} {}")


def check_pixels(info: WorkloadInfo, request: Request, written: str) -> None:
    """Raises TracekitError for an image size that the workload cannot make; `written` is how a user gave it, with
    places for its name and its number."""
    step = info.pixel_step
    for name, pixels in (("height", request.height), ("width", request.width)):
        if pixels is not None and step is not None and pixels % step:
            given = written.format(name, pixels)
            raise TracekitError(f"{info.name} makes images in multiples of {step} pixels: {given} is none")


def choose_size(info: WorkloadInfo, request: Request, device: str, free_bytes: int) -> tuple[str, str]:
    """The size to build and why, in words for the user. `free_bytes` is the free memory of the device it goes to.
    Raises TracekitError for a size that cannot fit."""
    if "options" in info.takes:
        # Of a model that tracekit does not know there is one size.
        return next(iter(info.sizes.items()))
    dtype = request.dtype
    if request.size == "auto":
        size, reason = _largest_that_fits(info, device, free_bytes, dtype)
    else:
        size, reason = request.size, "as asked"
        need = _need_gib(info, size, device, dtype)
        if need * GIB > free_bytes:
            others = [each for each in info.sizes if _need_gib(info, each, device, dtype) < need]
            smaller = "a smaller --size, or --size auto" if others else "--dtype bfloat16, or a smaller --batch-size"
            raise DoesNotFitError(
                f"{info.name} at size {size} needs about {_gib(need)} GiB of memory and {free_bytes / GIB:.1f} GiB are"
                f" free on the {device.upper()}; pass {smaller}"
            )
    sizes = [*info.sizes]
    # Of what was left to tracekit, a smaller one may be taken; on a CPU it is the smallest already.
    for each in sizes[sizes.index(size) :] if request.size == "auto" else [size]:
        more = growth_gib(info, request, each)
        if not more:
            return each, reason if each == size else f"{each} is the largest that fits the batch and image size"
        need = _need_gib(info, each, device, dtype, more)
        if need * GIB <= free_bytes:
            why = reason if each == size else f"{each} is the largest that fits"
            return each, f"{why}; this batch and image size need about {_gib(need)} GiB, by an estimate"
    estimate = f"{info.name} at size {each} needs about {_gib(need)} GiB for this batch and image size, by an estimate"
    if need * GIB > CLEARLY_OVER * free_bytes:
        free = f"{free_bytes / GIB:.1f} GiB are free on the {device.upper()}"
        mend = _pass_smaller("--batch-size", *_size_options(info.takes))
        raise DoesNotFitError(f"not enough memory: {estimate}, and {free}; {mend}")
    return each, f"{reason}; it may not fit: {estimate}, {free_bytes / GIB:.1f} GiB are free"


def growth_gib(info: WorkloadInfo, request: Request, size: str) -> float:
    """An estimate, in GiB of bfloat16, of what the request's batch and image sizes need beyond what is listed; 0.0
    where nothing was measured."""
    if info.megapixel_gib is None or (request.batch_size == 1 and request.height is None and request.width is None):
        return 0.0
    side: int = importlib.import_module(info.module).ARCHITECTURES[size].pixels
    pixels = request.batch_size * (request.height or side) * (request.width or side)
    return info.megapixel_gib * (pixels - side**2) / 1e6


def way_to_need_less(info: WorkloadInfo, size: str, settings: Settings | None = None) -> str:
    """What a user does who ran out of memory at this size: the next smaller one, and less of what the workload takes,
    or, where the settings are known, of what they have."""
    if "options" in info.takes:
        return "make the model or what it is called with smaller"
    has = info.takes if settings is None else [name for name in info.takes if getattr(settings, name, None)]
    sizes = [*info.sizes]
    smaller = sizes[sizes.index(size) + 1 :] if size in sizes else []
    mend = _pass_smaller("--batch-size", *_size_options(has))
    return f"pass --size {smaller[0]}, or {mend.removeprefix('pass ')}" if smaller else mend


def _size_options(takes: Collection[str]) -> list[str]:
    return [_option(name) for name in SIZES_OF_A_CALL if name in takes]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _pass_smaller(*options: str) -> str:
    *most, last = options
    return f"pass a smaller {', '.join(most)} or {last}" if most else f"pass a smaller {last}"


def weights_fit(weights: str, numbers: int | None, device: str, free_bytes: int, dtype: str | None) -> str:
    """In words, what real weights of so many numbers need; None where nobody knows how many. Raises TracekitError for
    more than there is free."""
    if numbers is None:
        return f"the weights of {weights}; how much memory they need is not known before they are loaded"
    wide = (dtype or ("float32" if device == "cpu" else "bfloat16")) == "float32"
    need = numbers * (4 if wide else 2) * (1 + UNKNOWN_ACTIVATIONS) + ALLOWANCE_BYTES
    if need > free_bytes:
        raise DoesNotFitError(
            f"{weights} needs about {_gib(need / GIB)} GiB of memory in {'float32' if wide else 'bfloat16'}, by the"
            f" {parameter_count(numbers)} parameters in its files, and {free_bytes / GIB:.1f} GiB are free on the"
            f" {device.upper()}; leave --pretrained out, or take smaller ones"
        )
    return f"the weights of {weights}: {parameter_count(numbers)} parameters, about {_gib(need / GIB)} GiB"


def _largest_that_fits(info: WorkloadInfo, device: str, free_bytes: int, dtype: str | None) -> tuple[str, str]:
    needs = {size: _need_gib(info, size, device, dtype) for size in info.sizes}
    smallest, need = [*needs.items()][-1]
    if device == "cpu" and need * GIB <= free_bytes:
        return smallest, f"there is no GPU here, so this is the {smallest} size on the CPU"
    if device == "cpu":
        raise DoesNotFitError(
            f"not enough memory for {info.name}: its {smallest} size needs {_gib(need)} GiB on the CPU,"
            f" {free_bytes / GIB:.1f} GiB are free; close what else uses it, or pass --dtype bfloat16"
        )
    for size, enough in needs.items():
        if enough * GIB <= free_bytes:
            return size, f"{size} needs about {_gib(enough)} GiB and {free_bytes / GIB:.0f} GiB of GPU memory are free"
    raise DoesNotFitError(
        f"not enough GPU memory for {info.name}: its {smallest} size needs {_gib(need)} GiB,"
        f" {free_bytes / GIB:.1f} GiB are free; close what else uses the GPU (`nvidia-smi` lists it)"
    )


def _need_gib(info: WorkloadInfo, size: str, device: str, dtype: str | None, more: float = 0.0) -> float:
    """Memory in the dtype that is used; 0.0 of a workload that says nothing."""
    # On the CPU models run in float32 where nobody says otherwise, twice the bytes of bfloat16.
    wide = (dtype or info.dtype or ("float32" if device == "cpu" else "bfloat16")) == "float32"
    return (info.memory_gib.get(size, 0.0) + more) * (2 if wide else 1)


def _gib(need: float) -> str:
    return f"{need:.0f}" if need >= 1 else f"{need:.1f}"
