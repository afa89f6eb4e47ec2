"""Who does work over many files: processes of this machine, or an executor that the user names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.errors import TracekitError

if TYPE_CHECKING:
    from concurrent.futures import Executor

#: Processes of this machine, as many as it has cores.
LOCAL = "local"


@contextmanager
def opened_engine(name: str) -> Iterator[Executor | None]:
    """The executor of `module:factory`, shut down in the end; None for `local`. Raises TracekitError where there is
    none of that name."""
    if name == LOCAL:
        yield None
        return
    executor = _made(name)
    # Some that are alike, submitit's for one, have nothing to shut down.
    shut_down = getattr(executor, "shutdown", lambda **_: None)
    try:
        yield executor
    except BaseException:
        shut_down(wait=False, cancel_futures=True)
        raise
    shut_down(wait=True)


def _made(name: str) -> Executor:
    module, mark, factory = name.partition(":")
    if not (module and mark and factory):
        raise TracekitError(f"--engine {name}: pass {LOCAL}, or module:function that returns an executor")
    # As with `python -m`: a file of the current folder is a module.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        make = getattr(import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise TracekitError(f"--engine {name} cannot be imported: {error}") from error
    executor: Executor = make()
    if not callable(getattr(executor, "submit", None)):
        raise TracekitError(
            f"--engine {name} returned {type(executor).__name__}: it must return a concurrent.futures.Executor"
        )
    return executor
