"""A user's own model: what their `build()` returns, or what they hand to `tracekit.profile`, as a workload."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from msgspec.structs import replace
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from tracekit.asked import check_value
from tracekit.errors import TracekitError
from tracekit.model.bounded import Argument, Many
from tracekit.model.progress import Progress
from tracekit.model.run import Component, UserModel
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request, Workload, WorkloadInfo
from tracekit.torch_internals import is_compiled, tree_leaves, tree_map_only
from tracekit.workloads.building import count_parameters, fill_in
from tracekit.workloads.own_errors import kind_of, their_error
from tracekit.workloads.own_function import arguments_of, load_function, taken
from tracekit.workloads.unlisted import OWN_SIZE, find_own, own_info

RETURNS = (
    "return a callable without arguments, (module, args), (module, args, kwargs), (module, kwargs) or a"
    " tracekit.Workload"
)


#: A model with its one call, and the call's inputs, where they are known.
WithInputs = tuple[Workload, tuple[torch.Tensor, ...]]


class Called(nn.Module):
    """A function as a module, so that it can be compiled in place. The modules that it uses are inside."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        # Past nn.Module.__setattr__, which would take a method of a module for something of its own.
        object.__setattr__(self, "function", function)
        # The modules that the function holds on to, by the names that it has for them; none that lies in another.
        inner: Any = function
        while isinstance(inner, functools.partial):
            inner = inner.func
        owner = getattr(inner, "__self__", None)
        held: dict[str, object] = {"model": owner} if owner is not None else {}
        if inspect.isfunction(inner):
            variables = inspect.getclosurevars(inner)
            held |= {**variables.globals, **variables.nonlocals}
        modules = {name: each for name, each in held.items() if isinstance(each, nn.Module)}
        seen = {id(lower) for each in modules.values() for lower in each.modules() if lower is not each}
        for name, module in modules.items():
            if id(module) not in seen:
                seen.add(id(module))
                self.add_module(name, module)

    def forward(self, *args: Any, **kwargs: Any) -> object:
        return self.function(*args, **kwargs)  # type: ignore[operator]


def workload_of_return(returned: object, place: str, device: str) -> WithInputs:
    """What `place` returned; a module and its inputs are brought to `device`."""
    if isinstance(returned, Workload):
        return checked(returned, place)
    came = f"{place} returned"
    if isinstance(returned, tuple) and returned and isinstance(returned[0], nn.Module):
        module, *inputs = returned
        kwargs = inputs.pop() if inputs and isinstance(inputs[-1], dict) else {}
        match inputs:
            case [] if len(returned) > 1:
                args: tuple[Any, ...] = ()
            case [tuple() | list() as sequence]:
                args = tuple(sequence)
            case [torch.Tensor() as tensor]:
                args = (tensor,)
            case _:
                kinds = ", ".join(type(each).__name__ for each in returned)
                raise TracekitError(f"{came} ({kinds}): args are a tuple, kwargs a dict; {RETURNS}")
        args, kwargs = tree_map_only(torch.Tensor, lambda each: each.to(device), (args, kwargs))
        return workload_of_call(module.to(device), args, kwargs, came)
    if callable(returned) and not isinstance(returned, type):
        return workload_of_call(returned.to(device) if isinstance(returned, nn.Module) else returned, (), {}, came)
    raise TracekitError(f"{came} {kind_of(returned)}: {RETURNS}")


def workload_of_call(
    model: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any], came: str
) -> WithInputs:
    """A module called without gradients, or a function called as it is; where they are, with these inputs. `came` says
    where it came from: `my_model.py:build() returned`."""
    _refuse_compiled(model)
    _check_inputs(model, args, kwargs, came)
    inputs = tuple(each for each in tree_leaves((args, dict(kwargs))) if isinstance(each, torch.Tensor))
    if isinstance(model, nn.Module):

        def call() -> object:
            with torch.no_grad():
                return model(*args, **kwargs)

        notes = ("The call runs under torch.no_grad().",)
        return Workload(call=call, modules={"model": model}, notes=notes), inputs
    wrapped = Called(model)
    for module in wrapped.children():
        _refuse_compiled(module)
    name = getattr(model, "__name__", "call").replace("<lambda>", "call")
    return Workload(call=lambda: wrapped(*args, **kwargs), modules={name: wrapped}), inputs


def _check_inputs(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], came: str) -> None:
    module = isinstance(model, nn.Module)
    if module and getattr(model, "_forward_pre_hooks", None):
        # They may make other inputs of these.
        return
    try:
        signature = inspect.signature(model.forward if module else model)
    except (TypeError, ValueError):
        # Written in C, or by TorchScript.
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        given = "with inputs that do not match its signature" if args or kwargs else "without inputs"
        kind = kind_of(model) if module else "a function"
        if "returned" not in came:
            mend = "pass them after it: tracekit.profile(model, x)"
        elif module:
            mend = "return (module, args), as in: return model, (torch.randn(1, 128),)"
        else:
            mend = "return one that takes none, as in: return lambda: step(x)"
        raise TracekitError(f"{came} {kind} {given} ({error}): {mend}") from None


def checked(given: Workload, place: str) -> WithInputs:
    """A Workload, which holds its inputs itself. Raises TracekitError for what cannot be compiled as it says."""
    if not given.modules:
        raise TracekitError(f"{place}: its Workload has no modules to compile; pass modules=")
    for name, module in given.modules.items():
        if not isinstance(module, nn.Module):
            raise TracekitError(f"{place}: its Workload's module {name!r} is {kind_of(module)}")
        _refuse_compiled(module)
    for what, value in (("notes", (given.title or "", *given.notes)), ("modules", tuple(given.modules))):
        check_value(f"{place}: Workload's {what}=", value, Many[Argument])
    if given.compiled is not None:
        unknown = [name for name in given.compiled if name not in given.modules]
        if unknown or not given.compiled:
            which = unknown[0] if unknown else "nothing"
            raise TracekitError(f"{place}: its Workload compiles {which}: pass some of {', '.join(given.modules)}")
    return given, ()


def _refuse_compiled(model: object) -> None:
    if is_compiled(model):
        raise TracekitError("this model is already compiled: pass it without torch.compile")


#: A call's length is not known, and those of small models scatter.
GPU_ITERATIONS = 50


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """Runs the user's file and their function, and takes what it returns. Raises TheirCodeError for what they raise."""
    name = request.workload
    function, arguments = prepared(request, device)
    place = f"{name}()"
    progress.detail(place)
    torch.manual_seed(request.seed)
    with _theirs(place):
        returned = function(**arguments)
    given, inputs = workload_of_return(returned, place, device)
    built = assembled(find_own(name), request, given, inputs, device, UserModel(request.options, taken(function)))
    if request.dtype and request.dtype != built.settings.dtype:
        raise TracekitError(
            f"{name} built a model of {built.settings.dtype}: leave --dtype {request.dtype} out, or add a"
            " parameter dtype"
        )
    shapes = [f"{'x'.join(map(str, x.shape)) or 'scalar'} {str(x.dtype).removeprefix('torch.')}" for x in inputs]
    called_with = f"its inputs are {', '.join(shapes)}" if shapes else ""

    def trial() -> None:
        with _theirs(f"a call of what {place} returned", called_with):
            built.call()

    return replace(built, trial=trial)


def prepared(request: Request, device: str) -> tuple[Callable[..., object], dict[str, Any]]:
    """The user's function, and what it is to be called with. Raises TracekitError for a file that cannot be run and for
    options that the function does not take."""
    name = request.workload
    function = load_function(name)
    if request.batch_size != 1 and "batch_size" not in taken(function):
        raise TracekitError(f"{name} takes no batch_size: leave --batch-size out, or add a parameter batch_size")
    common = {
        "batch_size": request.batch_size,
        "dtype": getattr(torch, request.dtype or ("float32" if device == "cpu" else "bfloat16")),
        "device": device,
        "seed": request.seed,
        "rank": dist.get_rank() if dist.is_initialized() else 0,
        "world_size": dist.get_world_size() if dist.is_initialized() else 1,
    }
    if "mesh" in taken(function):
        if not dist.is_initialized() and not request.nproc:
            raise TracekitError(f"{name} takes mesh: pass --nproc N to run N ranks")
        common["mesh"] = init_device_mesh(device, (dist.get_world_size(),)) if dist.is_initialized() else None
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
            raise TracekitError("a Workload contains its inputs: pass no other arguments")
        given, inputs = checked(model, "tracekit.profile")
    elif callable(model):
        given, inputs = workload_of_call(model, args, kwargs, "tracekit.profile was given")
    else:
        raise TracekitError(f"tracekit.profile takes a module, a function or a Workload, not {kind_of(model)}")
    info = own_info(request.workload, "as passed")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return assembled(info, request, given, inputs, device, UserModel(in_program=True))


def assembled(
    info: WorkloadInfo,
    request: Request,
    given: Workload,
    inputs: tuple[torch.Tensor, ...],
    device: str,
    own: UserModel,
) -> BuiltWorkload:
    """The workload, on the device where its tensors are; on `device` if it shows none."""
    held = (each for module in given.modules.values() for each in (*module.parameters(), *module.buffers()))
    tensors = [*held, *inputs]
    dtype = next((each.dtype for each in tensors if each.is_floating_point()), torch.get_default_dtype())
    where = {each.device.type for each in tensors}
    device = "cuda" if "cuda" in where else "cpu" if where else device
    training = []
    for name, module in given.modules.items():
        # A function's module is made here, and in no mode of its own.
        theirs = module.children() if isinstance(module, Called) else (module,)
        training += [name] if any(each.training for each in theirs) else []
    settings = replace(
        fill_in(info, request, OWN_SIZE, device, gpu_iterations=GPU_ITERATIONS),
        dtype=str(dtype).removeprefix("torch."),
        own=replace(own, training=tuple(training)),
    )
    call_at, names = given.call_at, tuple(given.modules) if given.compiled is None else given.compiled
    compiled = {id(given.modules[name]) for name in names}
    return BuiltWorkload(
        info=info,
        settings=settings,
        call=given.call,
        call_at=(lambda other: call_at(other.batch_size)) if call_at else None,
        targets=tuple(CompileTarget(name, given.modules[name]) for name in names),
        components=tuple(
            Component(name, count_parameters(module), id(module) in compiled) for name, module in given.modules.items()
        ),
        notes=(*filter(None, [given.title]), *given.notes),
        modules=tuple(given.modules.items()),
    )


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Random numbers go on after the block as if nothing had been drawn in it."""
    with torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else []):
        yield
