"""A model made from a configuration that somebody else wrote: read, rehearsed without memory, built, called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request, WorkloadInfo
from tracekit.workloads.hub_info import weights_of
from tracekit.workloads.one_forward import placed_on
from tracekit.workloads.rehearsal import Rehearsal, rehearse
from tracekit.workloads.settings import fill_in
from tracekit.workloads.sizes import ALLOWANCE_BYTES, GIB, UNKNOWN_ACTIVATIONS
from tracekit.workloads.weights import random_weights

#: Timed calls on a GPU: most are short.
GPU_ITERATIONS = 100


@dataclass(frozen=True, slots=True)
class Drawn:
    """A forward's arguments, on the CPU, and the sizes they were drawn in; None for what they have not."""

    arguments: dict[str, Any]
    height: int | None = None
    width: int | None = None
    seq_length: int | None = None


@dataclass(frozen=True, slots=True)
class Configured:
    """What a configuration stands for. `make` builds the model where torch builds models now, `load` reads weights into
    one, `draw` makes the arguments of its forward for a request. `remarks` are what a reader must know of them."""

    kind: Any
    make: Callable[[], Any]
    load: Callable[[str, torch.dtype], Any]
    draw: Callable[[Request], Drawn]
    remarks: tuple[str, ...] = ()


#: `read(request, size)`: None where the configuration has no such size.
Reader = Callable[[Request, str], Configured | None]


def cannot_make(kind: Any, reason: str) -> TracekitError:
    """The error for a model whose inputs are not made here, with the way out."""
    return TracekitError(
        f"the inputs of {kind.__name__} cannot be made from its configuration: {reason}; write them yourself and"
        " profile it as your own model: tracekit profile my_model.py:build"
    )


def look_into_configuration(info: WorkloadInfo, request: Request, read: Reader) -> WorkloadInfo:
    """The workload with its sizes, parameters, inputs and memory, found without building anything.

    Raises TracekitError for a configuration that cannot be had or read, and for inputs that do not fit the model.
    """
    largest, *others = info.sizes
    whole = read(request, largest)
    assert whole is not None
    model, drawn, rehearsal = _rehearsed(whole, request)
    rehearsed = {largest: rehearsal, **_rehearsed_others(others, request, read, rehearsal)}
    if request.size not in ("auto", *rehearsed):
        raise TracekitError(f"{info.name} has no size {request.size}: pass --size auto, {', '.join(rehearsed)}")
    memory_gib = {}
    for size, each in rehearsed.items():
        weights, activations = each.weights_bytes, each.activations_bytes
        call = UNKNOWN_ACTIVATIONS * weights if activations is None else activations
        memory_gib[size] = (weights + call + ALLOWANCE_BYTES) / GIB
    return replace(
        info,
        title=f"{whole.kind.__name__} of {info.name.partition(':')[2]}",
        sizes={size: info.sizes[size] for size in rehearsed},
        memory_gib=memory_gib,
        inputs=shapes(drawn.arguments),
        parameters=_count(model),
    )


def _rehearsed_others(sizes: list[str], request: Request, read: Reader, whole: Rehearsal) -> dict[str, Rehearsal]:
    """The smaller sizes that there are: a model that nobody has built smaller may not come apart so simply, or count
    its layers elsewhere and stay as it is."""
    found: dict[str, Rehearsal] = {}
    for size in sizes:
        smaller = read(request, size)
        if smaller is not None:
            with suppress(TracekitError):
                found[size] = _rehearsed(smaller, request)[2]
    return {size: each for size, each in found.items() if each.weights_bytes < whole.weights_bytes}


def _rehearsed(configured: Configured, request: Request) -> tuple[Any, Drawn, Rehearsal]:
    with random_weights(torch.bfloat16, "meta", request.seed):
        model = made(configured)
    drawn = configured.draw(request)
    arguments = placed_on(drawn.arguments, "meta", torch.bfloat16)
    try:
        return model, drawn, rehearse(model.eval(), arguments)
    except Exception as error:  # noqa: BLE001 - models raise anything for inputs that do not fit; the message has it.
        reason = f"of {shapes(drawn.arguments)} it says {_line(error)}"
        raise cannot_make(configured.kind, reason) from None


def made(configured: Configured) -> Any:
    """The model. Raises TracekitError with what its library says where it cannot be built."""
    try:
        return configured.make()
    except ImportError as error:
        said = " ".join(str(error).partition("Please note")[0].split()).rstrip(". ")
        raise TracekitError(f"a package is not installed: {said}") from None
    except Exception as error:  # noqa: BLE001 - a configuration may be wrong in any way; the message has it.
        raise TracekitError(
            f"{configured.kind.__name__} cannot be built from its configuration: {_line(error)}"
        ) from None


def build_configured(
    info: WorkloadInfo, read: Reader, request: Request, size: str, device: str, progress: Progress
) -> BuiltWorkload:
    """The model and its inputs on `device`, ready to be called. `size` is already chosen.

    Raises TracekitError as `look_into_configuration` does, and for real weights that cannot be had.
    """
    configured = read(request, size)
    if configured is None:
        raise TracekitError(f"{info.name} has no size {size}: pass --size full")
    drawn = configured.draw(request)
    settings = replace(
        fill_in(info, request, size, device, gpu_iterations=GPU_ITERATIONS),
        height=drawn.height,
        width=drawn.width,
        seq_length=drawn.seq_length,
        pretrained=weights_of(request),
    )
    dtype: torch.dtype = getattr(torch, settings.dtype)
    if settings.pretrained:
        progress.detail(f"loading {settings.pretrained}")
        model = configured.load(settings.pretrained, dtype).to(device)
    else:
        progress.detail(configured.kind.__name__)
        with random_weights(dtype, device, request.seed):
            model = made(configured)
        # What a model makes of numbers of its own is on the CPU still.
        model = model.to(device)
    model.requires_grad_(False).eval()

    def call_at(other: Request) -> Callable[[], object]:
        return _make_call(model, placed_on(configured.draw(other).arguments, device, dtype))

    return BuiltWorkload(
        info=info,
        settings=settings,
        call=call_at(request),
        call_at=call_at,
        targets=(CompileTarget("model", model),),
        components=(Component("model", _count(model), compiled=True),),
        notes=_notes(configured, settings, drawn),
        modules=(("model", model),),
    )


def _make_call(model: Any, arguments: Mapping[str, Any]) -> Callable[[], object]:
    def call() -> object:
        with torch.no_grad():
            return _tensors(model(**arguments))

    return call


def _tensors(found: Any) -> tuple[torch.Tensor, ...]:
    """The tensors of a model's answer, in its order; parts of the model that answer for themselves are left out."""
    if isinstance(found, torch.Tensor):
        return (found,)
    values = found.values() if isinstance(found, Mapping) else found
    return tuple(value for value in values if isinstance(value, torch.Tensor))


def shapes(arguments: Mapping[str, Any]) -> str:
    """`input_ids 1x128, attention_mask 1x128`."""
    said = []
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            said.append(shapes(value))
        elif isinstance(value, torch.Tensor):
            said.append(f"{name} {'x'.join(map(str, value.shape)) or 'scalar'}")
    return ", ".join(said)


def _notes(configured: Configured, settings: Settings, drawn: Drawn) -> tuple[str, ...]:
    call = (
        f"One call is one forward of {configured.kind.__name__}. Its inputs were made here and are on the device before"
        f" it: {shapes(drawn.arguments)}."
    )
    weights = "Weights are random: the output means nothing, the work is the model's own."
    return (call, *configured.remarks) if settings.pretrained else (call, weights, *configured.remarks)


def _count(model: Any) -> int:
    return sum(p.numel() for p in model.parameters())


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0].rstrip(".") if lines else "nothing more"
    return f"{type(error).__name__}: {said[:300]}"
