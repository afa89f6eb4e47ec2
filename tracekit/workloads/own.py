"""A user's own model: what their `build()` returns, or what they hand to `tracekit.profile`, as a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, UserModel
from tracekit.model.workload import BuiltWorkload, Request, Workload, WorkloadInfo
from tracekit.workloads.building import count_parameters, fill_in
from tracekit.workloads.own_errors import kind_of, their_error
from tracekit.workloads.own_function import arguments_of, load_function, taken
from tracekit.workloads.own_parts import Parts, parts_of_call, parts_of_return, parts_of_workload
from tracekit.workloads.unlisted import OWN_SIZE, find_own, own_info

#: A call's length is not known, and those of small models scatter.
GPU_ITERATIONS = 50


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """Runs the user's file and their function, and takes what it returns.

    Raises TracekitError for whatever does not fit together, TheirCodeError for what their code raises.
    """
    name = request.workload
    function, arguments = _prepared(request, device)
    place = f"{name}()"
    progress.detail(place)
    torch.manual_seed(request.seed)
    with _theirs(place):
        returned = function(**arguments)
    parts = parts_of_return(returned, place, device)
    built = assembled(find_own(name), request, parts, device, UserModel(request.options, taken(function)))
    if request.dtype and request.dtype != built.settings.dtype:
        raise TracekitError(
            f"{name} made a model of {built.settings.dtype}: leave --dtype {request.dtype} out, or let it take a dtype"
        )
    inputs = [
        f"{'x'.join(map(str, each.shape)) or 'scalar'} {str(each.dtype).removeprefix('torch.')}"
        for each in parts.inputs
    ]
    given = f"its inputs are {', '.join(inputs)}" if inputs else ""

    def trial() -> None:
        with _theirs(f"a call of what {place} returned", given):
            built.call()

    return replace(built, trial=trial)


def check(request: Request) -> None:
    """Raises TracekitError for a file that cannot be run and for options that `build()` does not take; it is not
    called."""
    _prepared(request, "cpu")


def _prepared(request: Request, device: str) -> tuple[Callable[..., object], dict[str, Any]]:
    """The user's function, and what it is to be called with."""
    name = request.workload
    function = load_function(name)
    if request.batch_size != 1 and "batch_size" not in taken(function):
        raise TracekitError(f"{name} takes no batch_size: leave --batch-size out, or let it take one")
    common = {
        "batch_size": request.batch_size,
        "dtype": getattr(torch, request.dtype or ("float32" if device == "cpu" else "bfloat16")),
        "device": device,
        "seed": request.seed,
    }
    return function, arguments_of(function, name, request.options, common)


@contextmanager
def _theirs(doing: str, given: str = "") -> Iterator[None]:
    try:
        yield
    except (torch.OutOfMemoryError, TracekitError):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - their code may raise anything; its owner is told.
        raise their_error(doing, error, given) from None


def hand_over(
    model: Callable[..., object] | Workload, args: tuple[Any, ...], kwargs: Mapping[str, Any], request: Request
) -> BuiltWorkload:
    """What was given to `tracekit.profile`, where it lies: nothing is moved to another device."""
    if isinstance(model, Workload):
        if args or kwargs:
            raise TracekitError("a Workload brings its inputs along: pass it alone")
        parts = parts_of_workload(model, "tracekit.profile")
    elif callable(model):
        parts = parts_of_call(model, args, kwargs, "tracekit.profile was given")
    else:
        raise TracekitError(f"tracekit.profile takes a module, a function or a Workload, not {kind_of(model)}")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return assembled(
        own_info(request.workload, "as it was handed over"), request, parts, device, UserModel(in_program=True)
    )


def assembled(info: WorkloadInfo, request: Request, parts: Parts, device: str, own: UserModel) -> BuiltWorkload:
    """The workload, on the device where its tensors are; on `device` if it shows none."""
    held = (each for _, module in parts.modules for each in (*module.parameters(), *module.buffers()))
    tensors = [*held, *parts.inputs]
    dtype = next((each.dtype for each in tensors if each.is_floating_point()), torch.get_default_dtype())
    where = {each.device.type for each in tensors}
    device = "cuda" if "cuda" in where else "cpu" if where else device
    filled = fill_in(info, request, OWN_SIZE, device, gpu_iterations=GPU_ITERATIONS)
    call_at, compiled = parts.call_at, {id(target.module) for target in parts.targets}
    return BuiltWorkload(
        info=info,
        settings=replace(filled, dtype=str(dtype).removeprefix("torch."), own=own),
        call=parts.call,
        call_at=(lambda other: call_at(other.batch_size)) if call_at else None,
        targets=parts.targets,
        components=tuple(
            Component(name, count_parameters(module), id(module) in compiled) for name, module in parts.modules
        ),
        notes=parts.notes,
        modules=parts.modules,
    )


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Random numbers go on after the block as if nothing had been drawn in it."""
    with torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else []):
        yield
