"""Which workload is meant, and what builds it."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo
from tracekit.workloads.listed import WORKLOADS
from tracekit.workloads.one_forward_table import ROWS
from tracekit.workloads.unlisted import ANY, DIFFUSERS, HF, find_on_hub, find_own, is_own

#: `build(request, size, device, progress)`, in a workload's own file.
Builder = Callable[[Request, str, str, Progress], BuiltWorkload]

#: What some workloads are called elsewhere, by how such names begin.
ALIASES = {
    "gemma": "causal-lm",
    "llama": "causal-lm",
    "gpt": "causal-lm",
    "qwen": "qwen2.5-vl",
    "stable-diffusion": "sdxl",
    "deeplab": "deeplabv3-mobilenet",
    "mobilenet": "deeplabv3-mobilenet",
}


def all_workloads() -> tuple[WorkloadInfo, ...]:
    """Every workload with a name of its own, in the order they are listed."""
    return WORKLOADS


def open_workloads() -> tuple[WorkloadInfo, ...]:
    """What stands for any number of models."""
    return tuple(ANY.values())


def find(name: str) -> WorkloadInfo:
    """The workload of that name. Raises TracekitError with the nearest name."""
    by_name = {workload.name: workload for workload in WORKLOADS}
    found = by_name.get(name) or find_on_hub(name) or (find_own(name) if is_own(name) else None)
    if found is not None:
        return found
    asked = name.lower()
    alias = next((known for word, known in ALIASES.items() if asked.startswith(word)), None)
    if "/" in name:
        near = [f"{HF}{name}", f"{DIFFUSERS}{name}"]
    elif alias:
        near = [alias]
    else:
        begun = [known for known in by_name if known.startswith(asked) or asked.startswith(known)]
        near = [*begun, *difflib.get_close_matches(asked, by_name, n=1, cutoff=0.5)]
    # Each once.
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else f"there is {', '.join(by_name)}"
    raise TracekitError(f"no workload is called {name!r}: {hint} (`tracekit workloads` lists them)")


def look_into(info: WorkloadInfo, request: Request) -> WorkloadInfo:
    """The workload with its sizes, memory and parameters, where only a configuration tells them.

    Raises TracekitError for one that cannot be had, read or used. `load_builder` comes before.
    """
    if info.memory_gib:
        return info
    ask: Callable[[WorkloadInfo, Request], WorkloadInfo] | None
    ask = getattr(importlib.import_module(info.module), "look_into", None)
    return ask(info, request) if ask else info


def load_builder(info: WorkloadInfo) -> Builder:
    """The workload's `build`. Raises TracekitError when its packages are missing."""
    try:
        module = importlib.import_module(info.module)
        for package in ROWS[info.name].needs if info.name in ROWS else ():
            importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("tracekit"):
            raise
        raise TracekitError(
            f"{info.name} needs the package {error.name}, which is not installed: "
            f"pip install -c constraints.txt '.[{info.extra}]' in tracekit's checkout"
        ) from None
    builder: Builder = module.build
    return builder


def check_buildable(request: Request) -> None:
    """Imports what the workload needs and looks for what would keep it from being built, before anything of it is.

    Raises TracekitError for packages that are missing, a configuration that is not here or cannot be used, a file of
    the user's that cannot be run, options that it does not take, and parts that a model has not. What real weights are
    made of, and what a user's own `build()` returns, is known only once they are there.
    """
    info = find(request.workload)
    builder = load_builder(info)
    if is_own(request.workload):
        importlib.import_module(info.module).check(request)
        return
    info = look_into(info, request)
    if request.pretrained:
        return
    from tracekit.workloads.scopes import build_nowhere, compile_targets

    size = next(iter(info.sizes)) if request.size == "auto" else request.size
    of_list = request.scope is None or request.scope in info.scopes
    if info in WORKLOADS or not of_list:
        found = build_nowhere(builder, request, size)
        if request.scope is not None and not of_list:
            compile_targets(found, request.scope)


def check_scope(info: WorkloadInfo, scope: str | None) -> str:
    """The scope to compile: the workload's default when none is asked for. Names of modules can only be checked when
    there is a model to look at (`scopes.py`).

    Raises TracekitError for what is no list of names.
    """
    if scope is None:
        return next(iter(info.scopes))
    names = [name.strip() for name in scope.split(",")]
    if not all(names):
        raise TracekitError(f"--scope {scope!r} names nothing at one place: write names with commas between them")
    return ",".join(dict.fromkeys(names))
