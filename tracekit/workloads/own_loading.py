"""The function that a user named, out of their own file or module."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from tracekit.errors import TracekitError
from tracekit.workloads.own_errors import kind_of, line_in, their_error
from tracekit.workloads.own_info import is_file, no_such_module, split_name


def load_function(name: str) -> Callable[..., object]:
    """The function of `my_model.py:build` or `package.module:build`, its file run as a module of its own.

    Raises TracekitError for whatever keeps it from being had, TheirCodeError with their traceback for what the code
    itself raised.
    """
    where, function = split_name(name)
    module = _load_file(Path(where)) if is_file(where) else _import(where)
    if not hasattr(module, function):
        raise _no_such_function(where, function, module)
    found = getattr(module, function)
    from torch import nn

    if not callable(found) or isinstance(found, nn.Module):
        raise TracekitError(
            f"{name} is {kind_of(found)}: name a function that builds and returns the model with its inputs"
        )
    checked: Callable[..., object] = found
    return checked


def _no_such_function(where: str, name: str, module: ModuleType) -> TracekitError:
    """The error for a function that is not there, with the nearest of those that are."""
    own = [
        each
        for each, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not each.startswith("_")
    ]
    near = difflib.get_close_matches(name, own, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {near[0]}?"
    elif own:
        hint = f"it has {', '.join(own)}"
    else:
        hint = "it has none at all; write one that returns the model with its inputs"
    return TracekitError(f"{where} has no function {name!r}: {hint}")


def _load_file(path: Path) -> ModuleType:
    # As `python my_model.py` does, so that it finds its neighbours.
    _look_in(path.parent.resolve())
    # Under a name of its own: a file called tokenizers.py must not stand in for the package.
    name = f"own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise TracekitError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - their code may raise anything; its owner is told.
        del sys.modules[name]
        raise _explained(str(path), str(path.resolve()), error) from None
    return module


def _import(where: str) -> ModuleType:
    _look_in(Path.cwd())
    try:
        return importlib.import_module(where)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name and (where == error.name or where.startswith(f"{error.name}.")):
            raise no_such_module(error.name) from None
        raise _explained(where, where, error) from None
    except BaseException as error:  # noqa: BLE001 - their code may raise anything; its owner is told.
        raise _explained(where, where, error) from None


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _explained(shown: str, file: str, error: BaseException) -> TracekitError:
    """The error of a user's file that could not be run to its end."""
    if isinstance(error, SyntaxError) and error.filename:
        place = shown if error.filename == file else error.filename
        place += f", line {error.lineno}" if error.lineno else ""
        return TracekitError(f"{place} is no Python: {error.msg}: {(error.text or '').strip()!r}")
    if isinstance(error, ModuleNotFoundError) and error.name:
        line = line_in(file, error)
        place = f"{shown}, line {line}," if line else shown
        package = error.name.partition(".")[0]
        return TracekitError(f"{place} imports {error.name}, which is not installed here: pip install {package}?")
    if isinstance(error, SystemExit):
        return TracekitError(
            f"{shown} ended the process itself when it was imported: put what a script does under"
            ' `if __name__ == "__main__":`'
        )
    return their_error(f"importing {shown}", error)
