"""Which workload is meant, and what builds it."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo
from tracekit.workloads.hub_info import ANY, DIFFUSERS, HF, find_on_hub
from tracekit.workloads.listed import WORKLOADS
from tracekit.workloads.one_forward_table import ROWS
from tracekit.workloads.own_info import is_own, own_info

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
    found = by_name.get(name) or find_on_hub(name) or (own_info(name) if is_own(name) else None)
    if found is not None:
        return found
    raise TracekitError(f"no workload is called {name!r}: {_hint(name, by_name)} (`tracekit workloads` lists them)")


def _hint(name: str, there: Iterable[str]) -> str:
    there, asked = tuple(there), name.lower()
    if "/" in name:
        return f"did you mean {HF}{name} or {DIFFUSERS}{name}?"
    alias = next((known for word, known in ALIASES.items() if asked.startswith(word)), None)
    begun = [known for known in there if known.startswith(asked) or asked.startswith(known)]
    near = [alias] if alias else [*begun, *difflib.get_close_matches(asked, there, n=1, cutoff=0.5)]
    # Each once.
    return f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else f"there is {', '.join(there)}"


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
