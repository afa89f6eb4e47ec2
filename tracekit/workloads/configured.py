"""A model made from a configuration that somebody else wrote: read, tried on the meta device, built, called."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import torch
from msgspec import Struct
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo
from tracekit.workloads.building import count_parameters, fill_in, random_weights
from tracekit.workloads.one_forward import RANDOM, built_forward, placed_on
from tracekit.workloads.sizes import ALLOWANCE_BYTES, GIB, UNKNOWN_ACTIVATIONS
from tracekit.workloads.unlisted import find_on_hub, weights_of

#: Timed calls on a GPU: most are short.
GPU_ITERATIONS = 100


class Drawn(Struct, frozen=True):
    """A forward's arguments, on the CPU, and the sizes they were drawn in; None for what they have not."""

    arguments: dict[str, Any]
    height: int | None = None
    width: int | None = None
    seq_length: int | None = None


class Configured(Struct, frozen=True):
    """What a configuration stands for. `make` builds the model where torch builds models now, `load` reads weights into
    one, `draw` makes the arguments of its forward for a request. `remarks` are what a reader must know of them."""

    kind: Any
    make: Callable[[], Any]
    load: Callable[[str, torch.dtype], Any]
    draw: Callable[[Request], Drawn]
    remarks: tuple[str, ...] = ()


#: `read(request, size)`: None where the configuration has no such size.
Reader = Callable[[Request, str], Configured | None]


def look_into_configuration(read: Reader, info: WorkloadInfo, request: Request) -> WorkloadInfo:
    """The workload with its sizes, parameters, inputs and memory, found without building anything. Raises TracekitError
    for a configuration that cannot be had or read, and for inputs that do not fit the model."""
    largest, *others = info.sizes
    whole = read(request, largest)
    assert whole is not None
    model, drawn = _without_weights(whole, request)
    weights = {largest: _weight_bytes(model)}
    for size in others:
        smaller = read(request, size)
        # A model that nobody has built smaller may not come apart so simply, or count its layers where it stays as is.
        with suppress(TracekitError):
            found = _weight_bytes(_without_weights(smaller, request)[0]) if smaller else weights[largest]
            weights |= {size: found} if found < weights[largest] else {}
    if request.size not in ("auto", *weights):
        raise TracekitError(f"{info.name} has no size {request.size}: pass --size auto, {', '.join(weights)}")
    return replace(
        info,
        title=f"{whole.kind.__name__} of {info.name.partition(':')[2]}",
        sizes={size: info.sizes[size] for size in weights},
        memory_gib={size: ((1 + UNKNOWN_ACTIVATIONS) * held + ALLOWANCE_BYTES) / GIB for size, held in weights.items()},
        inputs=shapes(drawn.arguments),
        parameters=count_parameters(model),
    )


def _without_weights(configured: Configured, request: Request) -> tuple[Any, Drawn]:
    """The model on the meta device, and inputs that one forward there has taken."""
    with random_weights(torch.bfloat16, "meta", request.seed):
        model = _make(configured).eval()
    drawn = configured.draw(request)
    try:
        with torch.no_grad():
            model(**placed_on(drawn.arguments, "meta", torch.bfloat16))
    except Exception as error:  # noqa: BLE001 - models raise anything for inputs that do not fit; the message has it.
        # A model that asks for values cannot be called there: a real call will tell.
        if not isinstance(error, NotImplementedError) and "meta" not in str(error):
            reason = f"{shapes(drawn.arguments)} raised {_line(error)}"
            raise cannot_make(configured.kind, reason) from None
    return model, drawn


def _weight_bytes(model: Any) -> int:
    return sum(each.nbytes for each in (*model.parameters(), *model.buffers()))


def _make(configured: Configured) -> Any:
    try:
        return configured.make()
    except ImportError as error:
        said = " ".join(str(error).partition("Please note")[0].split()).rstrip(". ")
        raise TracekitError(f"a package is not installed: {said}") from None
    except Exception as error:  # noqa: BLE001 - a configuration may be wrong in any way; the message has it.
        raise TracekitError(
            f"{configured.kind.__name__} cannot be built from its configuration: {_line(error)}"
        ) from None


def build_configured(read: Reader, request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The model and its inputs on `device`, ready to be called. `size` is already chosen. Raises TracekitError as
    `look_into_configuration` does, and for real weights that cannot be had."""
    info, configured = find_on_hub(request.workload), read(request, size)
    assert info is not None
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
        model = configured.load(settings.pretrained, dtype)
    else:
        progress.detail(configured.kind.__name__)
        with random_weights(dtype, device, request.seed):
            model = _make(configured)

    def tensors(found: Any) -> tuple[torch.Tensor, ...]:
        # In the order of the model's answer; parts of the model that answer for themselves are left out.
        values = (found,) if torch.is_tensor(found) else found.values() if isinstance(found, Mapping) else found
        return tuple(filter(torch.is_tensor, values))

    built = built_forward(info, settings, model, request, lambda asked: configured.draw(asked).arguments, tensors)
    note = (
        f"One call is one forward of {configured.kind.__name__}. Its inputs are generated on the device before the"
        f" call: {shapes(drawn.arguments)}."
    )
    random = () if settings.pretrained else (RANDOM,)
    return replace(built, notes=(note, *random, *configured.remarks))


def shapes(arguments: Mapping[str, Any]) -> str:
    """`input_ids 1x128, attention_mask 1x128`."""
    said = []
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            said.append(shapes(value))
        elif isinstance(value, torch.Tensor):
            said.append(f"{name} {'x'.join(map(str, value.shape)) or 'scalar'}")
    return ", ".join(said)


def cannot_make(kind: Any, reason: str) -> TracekitError:
    """The error for a model whose inputs are not made here, with the way out."""
    return TracekitError(
        f"the inputs of {kind.__name__} cannot be generated from its configuration: {reason}; build them yourself and"
        " profile your own model: tracekit profile my_model.py:build"
    )


def _line(error: BaseException) -> str:
    first = next(iter(str(error).strip().splitlines()), "no message")
    return f"{type(error).__name__}: {first.strip().rstrip('.')[:300]}"
