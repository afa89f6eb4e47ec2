"""A program run in this process as `python` would: its arguments, folder, output and exit code are its own."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import io
import runpy
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType

from tracekit.printing import echo


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls `then` once, right after a module was imported: what a program sets before it imports torch counts."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then, self._is_looking = name, then, False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name or self._is_looking:
            return None
        self._is_looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_looking = False
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            sys.meta_path.remove(self)
            self._then()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def when_imported(name: str, then: Callable[[], None]) -> None:
    """Calls `then` once the module is there."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _WhenImported(name, then))


def run_program(program: str, arguments: Sequence[str], *, is_module: bool) -> None:
    """Runs it to its end, as `__main__`."""
    sys.argv = [program, *arguments]
    if not sys.flags.safe_path:
        # Until now the folder of the command.
        sys.path[0] = str(Path.cwd()) if is_module else str(Path(program).resolve().parent)
    if is_module:
        _check_module(program)
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        _run_file(program)


def _check_module(name: str) -> None:
    """Ends as Python does where there is no such module."""
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not name.startswith(f"{error.name}."):
            raise
        sys.exit(f"{sys.executable}: Error while finding module specification for {name!r} ({error!r})")
    if found is None:
        sys.exit(f"{sys.executable}: No module named {name}")


def _run_file(given: str) -> None:
    # Python's own `__file__` is absolute, and sys.argv[0] as it was given.
    path = str(Path(given).absolute())
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    main = ModuleType("__main__")
    vars(main).update(__file__=path, __builtins__=__builtins__, __cached__=None, __annotations__={})
    # It stays: what threads and pickles of the program name is in it.
    sys.modules["__main__"] = main
    exec(code, vars(main))


def show_error(error: BaseException) -> None:
    """As Python writes what ends a program, without our frames around it."""
    first = error.__traceback__
    while first is not None and not _is_of_program(first):
        first = first.tb_next
    error = error.with_traceback(first or error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)


def _is_of_program(tb: TracebackType) -> bool:
    file = tb.tb_frame.f_code.co_filename
    return file != "<frozen runpy>" and Path(file).parent != Path(__file__).parent


def say(line: str) -> None:
    """One line of ours: standard output is the program's. What it has closed hears nothing."""
    with suppress(OSError, ValueError, AttributeError):
        echo(f"tracekit: {line}", err=True)
