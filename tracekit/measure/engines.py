"""Who does work over many files: processes of this machine, Ray, or an executor that the user names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.errors import EngineError, TracekitError
from tracekit.workloads.own_errors import their_error

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tracekit.measure.ray_engine import RayExecutor

#: Processes of this machine, as many as it has cores.
LOCAL = "local"
#: A cluster of Ray, or the address of one that is asked through Ray Client.
RAY = "ray"
RAY_CLIENT = "ray://"


@contextmanager
def opened_engine(name: str, memory_bytes: int | None = None) -> Iterator[Executor | None]:
    """The executor that is called so, shut down in the end; None for `local`. `memory_bytes` is what one call takes,
    for an engine that can reserve it. Nothing is to be printed into standard output meanwhile: Ray's is thrown away.
    Raises TracekitError where there is none of that name, and with its name for an EngineError of the block."""
    if name == LOCAL:
        yield None
        return
    try:
        if is_ray(name):
            with opened_ray(name) as cluster:
                cluster.ask_for(memory_bytes=memory_bytes)
                yield cluster
            return
        executor = _made(name)
        with _shut_down_after(executor):
            yield executor
    except EngineError as error:
        raise TracekitError(f"--engine {name}: {error}") from error


def is_ray(name: str) -> bool:
    """Whether the engine is Ray."""
    return name == RAY or name.startswith(RAY_CLIENT)


@contextmanager
def opened_ray(name: str) -> Iterator[RayExecutor]:
    """The cluster that an engine of this name is. Raises TracekitError where there is none."""
    from tracekit.measure.ray_engine import join_cluster

    with ExitStack() as held:
        # Ray prints what its nodes say of workers into standard output, in which JSON may be expected.
        nowhere = held.enter_context(Path(os.devnull).open("w"))
        held.enter_context(redirect_stdout(nowhere))
        executor = join_cluster(name if name != RAY else None)
        with _shut_down_after(executor):
            yield executor


@contextmanager
def _shut_down_after(executor: Executor) -> Iterator[None]:
    # Some that are alike, submitit's for one, have nothing to shut down.
    shut_down = getattr(executor, "shutdown", lambda **_: None)
    try:
        yield
    except BaseException:
        # Dask's takes no cancel_futures.
        options = {"cancel_futures": True} if "cancel_futures" in signature(shut_down).parameters else {}
        shut_down(wait=False, **options)
        raise
    shut_down(wait=True)


def _made(name: str) -> Executor:
    module, mark, factory = name.partition(":")
    if not (module and mark and factory):
        raise TracekitError(f"--engine {name}: pass {LOCAL}, {RAY}, {RAY_CLIENT}HOST:PORT or module:function")
    # As with `python -m`: a file of the current folder is a module.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        make = getattr(import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise TracekitError(f"--engine {name} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:
        raise TracekitError(str(their_error(f"--engine {name}: importing {module}", error))) from error
    try:
        executor: Executor = make()
    except (Exception, SystemExit) as error:
        raise TracekitError(str(their_error(f"--engine {name}", error, "it is called without arguments"))) from error
    if not callable(getattr(executor, "submit", None)):
        raise TracekitError(
            f"--engine {name} returned {type(executor).__name__}: it must return a concurrent.futures.Executor"
        )
    return executor
