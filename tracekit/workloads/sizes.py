"""Which size of a workload fits the machine?"""

import importlib
from collections.abc import Collection
from pathlib import Path

from tracekit.errors import DoesNotFitError, TracekitError
from tracekit.model.option import OPTIONS, OWN_WEIGHTS
from tracekit.model.run import Settings
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.numbers import parameter_count
from tracekit.nvml import NoDriver, read_driver
from tracekit.workloads.registry import all_workloads
from tracekit.workloads.unlisted import check_module, is_own

GIB = 2**30
#: What AMD's driver is reached by.
AMD = Path("/dev/kfd")
#: Beside weights and activations: workspaces of libraries, what compiling tries out. A round figure.
ALLOWANCE_BYTES = GIB // 2
#: Of the weights, for activations that only a real call can tell. A guess.
UNKNOWN_ACTIVATIONS = 0.2
#: An estimate of what larger images need is off by less than this: what needs more than so many times what is free is
#: not tried.
CLEARLY_OVER = 1.5

#: What one workload has and another has not; options of a user's own model are checked by their `build()`.
NOT_EVERYWHERE = {each.name for each in OPTIONS if not each.everywhere and each.role != "own"}
#: The ways of being parallel in which each rank has as many heads.
OF_HEADS = ("tp", "ulysses")
#: The options that need more memory the greater they are, beside the batch, where a workload takes them.
SIZES_OF_A_CALL = tuple(each.name for each in OPTIONS if each.larger and not each.everywhere)


def check_request(info: WorkloadInfo, request: Request) -> None:
    """Raises TracekitError for options, sizes and image sizes that the workload has not."""
    if request.options and "options" not in info.takes:
        raise TracekitError(f"{info.name} takes no options after --: leave out {' '.join(request.options)}")
    given = (each for each in request.__struct_fields__ if each in NOT_EVERYWHERE)
    asked = [name for name in given if getattr(request, name) is not None]
    refused = [_option(name) for name in asked if name not in info.takes]
    if refused:
        them = "it" if len(refused) == 1 else "them"
        ranked = ", ".join(each.name for each in all_workloads() if "nproc" in each.takes)
        others = f"; over ranks run {ranked} and models of your own" if "--nproc" in refused else ""
        raise TracekitError(f"{info.name} has no {' and no '.join(refused)}: leave {them} out{others}")
    if request.parallel and request.parallel not in info.parallel:
        raise TracekitError(f"{info.name} has no --parallel {request.parallel}: pass {' or '.join(info.parallel)}")
    if request.compile_order and (request.parallel, request.scope) != ("fsdp2", "regional"):
        raise TracekitError("--compile-order is for sharded blocks: pass --parallel fsdp2 --scope regional")
    if request.compiled_autograd and request.nproc and request.parallel in (None, "ddp"):
        raise TracekitError("--compiled-autograd cannot trace ddp's reducer: pass --parallel fsdp2 or tp")
    if "options" in info.takes and is_own(info.name):
        check_module(info.name)
    size, pretrained = request.size, request.pretrained
    if size != "auto" and size not in info.sizes:
        raise TracekitError(f"{info.name} has no size {size!r}: pass --size auto, {', '.join(info.sizes)}")
    if pretrained == OWN_WEIGHTS and "download" not in info.takes:
        known = " or ".join(info.checkpoints.values()) or "ID"
        raise TracekitError(f"--pretrained needs a model for {info.name}: pass --pretrained {known}, or a folder")
    if pretrained and size != "auto":
        raise TracekitError("--pretrained determines the size: leave --size out")
    check_pixels(info, request, "--{} {}")
    _check_heads(info, request)


def _check_heads(info: WorkloadInfo, request: Request) -> None:
    """Raises TracekitError where no size that may be built has heads that the ranks can share: ranks that are started
    say so too, but late."""
    parallel = request.parallel or next(iter(info.parallel), None)
    if request.pretrained or request.nproc is None or parallel not in OF_HEADS:
        return
    sizes = [request.size]
    if request.size == "auto":
        driver = read_driver()
        # That there is no GPU is sure without torch: no driver of NVIDIA's, and none of AMD's.
        no_gpu = isinstance(driver, NoDriver) and driver.code == "no_driver" and not AMD.exists()
        sizes = [*info.sizes][-1:] if no_gpu else [*info.heads]
    heads = [info.heads[size] for size in sizes if size in info.heads]
    if heads and all(count % request.nproc for count in heads):
        counts = " or ".join(map(str, dict.fromkeys(heads)))
        raise TracekitError(f"--parallel {parallel} splits {counts} heads: pass an --nproc that divides them")


def check_pixels(info: WorkloadInfo, request: Request, written: str) -> None:
    """Raises TracekitError for an image size that cannot be made; `written` has places for its name and number."""
    step = info.pixel_step
    for name, pixels in (("height", request.height), ("width", request.width)):
        if pixels is not None and step is not None and pixels % step:
            given = written.format(name, pixels)
            raise TracekitError(f"{given}: image sizes of {info.name} must be multiples of {step} pixels")


def choose_size(info: WorkloadInfo, request: Request, device: str, free_bytes: int) -> tuple[str, str]:
    """The size to build and why, in words for the user. `free_bytes` are those of the device it goes to.
    Raises DoesNotFitError for a size that cannot fit."""
    if "options" in info.takes:
        # Of a model that tracekit does not know there is one size.
        return next(iter(info.sizes.items()))
    dtype, sizes = request.dtype, [*info.sizes]
    free = f"{free_bytes / GIB:.1f} GiB are free"
    if request.size == "auto":
        size, reason = _largest_that_fits(info, device, free_bytes, dtype)
        # A smaller one may be taken; on a CPU it is the smallest already.
        sizes = sizes[sizes.index(size) :]
    else:
        size, reason = request.size, "as requested"
        need = _need_gib(info, size, device, dtype)
        if need * GIB > free_bytes:
            others = any(_need_gib(info, each, device, dtype) < need for each in sizes)
            smaller = "a smaller --size, or --size auto" if others else "--dtype bfloat16, or a smaller --batch-size"
            raise DoesNotFitError(
                f"{info.name} at size {size} needs about {_gib(need)} GiB of memory and {free} on the {device.upper()};"
                f" pass {smaller}"
            )
        sizes = [size]
    for each in sizes:
        more = growth_gib(info, request, each)
        if not more:
            return each, reason if each == size else f"{each} is the largest that fits the batch and image size"
        need = _need_gib(info, each, device, dtype, more)
        if need * GIB <= free_bytes:
            why = reason if each == size else f"{each} is the largest that fits"
            return each, f"{why}; this batch and image size need about {_gib(need)} GiB (est.)"
    estimate = f"{info.name} at size {each} needs about {_gib(need)} GiB (est.) for this batch and image size"
    if need * GIB > CLEARLY_OVER * free_bytes:
        mend = _pass_smaller(info.takes)
        raise DoesNotFitError(f"not enough memory: {estimate}, and {free} on the {device.upper()}; {mend}")
    return each, f"{reason}; may not fit: {estimate}, {free}"


def growth_gib(info: WorkloadInfo, request: Request, size: str) -> float:
    """An estimate, in bfloat16, of what batch and image sizes need beyond the list; 0.0 where nothing was measured."""
    if info.megapixel_gib is None or (request.batch_size == 1 and request.height is None and request.width is None):
        return 0.0
    side: int = importlib.import_module(info.module).ARCHITECTURES[size].pixels
    pixels = request.batch_size * (request.height or side) * (request.width or side)
    return info.megapixel_gib * (pixels - side**2) / 1e6


def way_to_need_less(info: WorkloadInfo, size: str, settings: Settings | None = None) -> str:
    """What helps who ran out of memory: a smaller size, less of what the workload takes or the settings have."""
    if "options" in info.takes:
        return "use a smaller model or smaller inputs"
    has = info.takes if settings is None else [name for name in info.takes if getattr(settings, name, None)]
    sizes = [*info.sizes]
    smaller = sizes[sizes.index(size) + 1 :] if size in sizes else []
    mend = _pass_smaller(has)
    return f"pass --size {smaller[0]}, or {mend.removeprefix('pass ')}" if smaller else mend


def _pass_smaller(takes: Collection[str]) -> str:
    *most, last = ["--batch-size", *(_option(name) for name in SIZES_OF_A_CALL if name in takes)]
    return f"pass a smaller {', '.join(most)} or {last}" if most else f"pass a smaller {last}"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def weights_fit(weights: str, numbers: int | None, device: str, free_bytes: int, dtype: str | None) -> str:
    """In words, what real weights of so many numbers need; None where nobody knows how many. Raises DoesNotFitError
    for more than there is free."""
    if numbers is None:
        return f"weights of {weights}; memory unknown until they are loaded"
    wide = (dtype or ("float32" if device == "cpu" else "bfloat16")) == "float32"
    need = numbers * (4 if wide else 2) * (1 + UNKNOWN_ACTIVATIONS) + ALLOWANCE_BYTES
    gib, count = _gib(need / GIB), parameter_count(numbers)
    if need > free_bytes:
        raise DoesNotFitError(
            f"{weights} needs about {gib} GiB of memory in {'float32' if wide else 'bfloat16'} ({count}"
            f" parameters), and {free_bytes / GIB:.1f} GiB are free on the {device.upper()}; leave --pretrained out, or"
            " pass a smaller model"
        )
    return f"weights of {weights}: {count} parameters, about {gib} GiB"


def _largest_that_fits(info: WorkloadInfo, device: str, free_bytes: int, dtype: str | None) -> tuple[str, str]:
    free_gib, cpu = free_bytes / GIB, device == "cpu"
    for size in [*info.sizes][-1:] if cpu else info.sizes:
        need = _need_gib(info, size, device, dtype)
        if need <= free_gib and cpu:
            return size, f"no GPU found, so the {size} size runs on the CPU"
        if need <= free_gib:
            return size, f"needs {_gib(need)} GiB, {free_gib:.0f} GiB of GPU memory free"
    memory, on = ("memory", " on the CPU") if cpu else ("GPU memory", "")
    mend = "it, or pass --dtype bfloat16" if cpu else "the GPU (`nvidia-smi` lists it)"
    raise DoesNotFitError(
        f"not enough {memory} for {info.name}: its {size} size needs {_gib(need)} GiB{on}, {free_gib:.1f} GiB are free;"
        f" end other processes that use {mend}"
    )


def _need_gib(info: WorkloadInfo, size: str, device: str, dtype: str | None, more: float = 0.0) -> float:
    """Memory in the dtype that is used; 0.0 of a workload that says nothing."""
    # On the CPU models run in float32 where nobody says otherwise, twice the bytes of bfloat16.
    wide = (dtype or info.dtype or ("float32" if device == "cpu" else "bfloat16")) == "float32"
    return (info.memory_gib.get(size, 0.0) + more) * (2 if wide else 1)


def _gib(need: float) -> str:
    return f"{need:.0f}" if need >= 1 else f"{need:.1f}"
