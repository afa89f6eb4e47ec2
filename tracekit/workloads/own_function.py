"""The function that a user named, out of their own file or module, and its arguments from what stands after `--`."""

import difflib
import importlib
import importlib.util
import inspect
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from tracekit.errors import TracekitError
from tracekit.model.option import OPTIONS
from tracekit.workloads.own_errors import kind_of, their_error
from tracekit.workloads.unlisted import is_file, no_such_module

#: What tracekit hands to a `build()` that takes it, and how the user chooses it.
COMMON = {
    "batch_size": "pass --batch-size before the --",
    "dtype": "pass --dtype before the --",
    "seed": "pass --seed before the --",
    "rank": "it is this process's of --nproc",
    "world_size": "pass --nproc before the --",
    "mesh": "pass --nproc before the --",
    "device": "tracekit uses the GPU if there is one; CUDA_VISIBLE_DEVICES= hides it",
}
#: What it gets where the user chose it, by an option or after --: all sizes of a call but the batch.
SIZES = {each.name: each.option for each in OPTIONS if each.role == "call" and not each.everywhere}
MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def load_function(name: str) -> Callable[..., object]:
    """The function of `my_model.py:build` or `package.module:build`, its file run as a module of its own. Raises
    TracekitError for what keeps it from being had, TheirCodeError for what the code itself raised."""
    where, _, function = name.rpartition(":")
    module = _load_module(where)
    if not hasattr(module, function):
        public = {name: each for name, each in vars(module).items() if not name.startswith("_")}
        own = [n for n, each in public.items() if inspect.isfunction(each) and each.__module__ == module.__name__]
        near = difflib.get_close_matches(function, own, n=1, cutoff=0.5)
        hint = "add one that returns the model with its inputs"
        if own:
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(own)}"
        raise TracekitError(f"{where} has no function {function!r}: {hint}")
    found: Callable[..., object] = getattr(module, function)
    from torch import nn

    if not callable(found) or isinstance(found, nn.Module):
        raise TracekitError(
            f"{name} is {kind_of(found)}: pass a function that builds and returns the model with its inputs"
        )
    return found


def _load_module(where: str) -> ModuleType:
    path, name = Path(where).resolve(), where
    # As `python my_model.py` does, so that a file finds its neighbours.
    folder = str(path.parent if is_file(where) else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        if not is_file(where):
            return importlib.import_module(where)
        # Under a name of its own: a file called tokenizers.py must not stand in for the package.
        name = f"own_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - their code may raise anything; its owner is told.
        if is_file(where):
            del sys.modules[name]
            raise _explained(str(Path(where)), str(path), error) from None
        if isinstance(error, ModuleNotFoundError) and error.name and f"{where}.".startswith(f"{error.name}."):
            raise no_such_module(error.name) from None
        raise _explained(where, where, error) from None


def _explained(shown: str, file: str, error: BaseException) -> TracekitError:
    """The error of a user's file that could not be run to its end."""
    if isinstance(error, SyntaxError) and error.filename:
        place = shown if error.filename == file else error.filename
        place += f", line {error.lineno}" if error.lineno else ""
        return TracekitError(f"{place} is not valid Python: {error.msg}: {(error.text or '').strip()!r}")
    if isinstance(error, ModuleNotFoundError) and error.name:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
        place = f"{shown}, line {lines[-1]}," if lines else shown
        # No name to install: one that was mistyped may be somebody else's package.
        return TracekitError(f"{place} imports {error.name}, which is not installed: install it, or correct the name")
    if isinstance(error, SystemExit):
        return TracekitError(f'{shown} exited on import: move the script\'s code under `if __name__ == "__main__":`')
    return their_error(f"importing {shown}", error)


def parse_options(words: Iterable[str]) -> tuple[str, ...]:
    """Each option as NAME=VALUE: `width=64`, `--width=64` and `--width 64` are the same. Raises TracekitError for
    whatever is none of them, and for a name given twice."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            following = next(rest, None) if word.startswith("--") else None
            if following is None:
                raise TracekitError(f"{word!r} has no value: options after -- are NAME=VALUE or --NAME VALUE")
            value = following
        name = name.replace("-", "_")
        if not name.isidentifier():
            raise TracekitError(f"{word!r} is not an option: options after -- are NAME=VALUE or --NAME VALUE")
        if name in found:
            raise TracekitError(f"{name} is given twice after --")
        found[name] = value
    return tuple(f"{name}={value}" for name, value in found.items())


def arguments_of(
    build: Callable[..., object], place: str, options: Iterable[str], common: Mapping[str, object]
) -> dict[str, Any]:
    """The keyword arguments to call `build` with: the options, as the types that it names or has by default, and of
    `common` what it takes. Raises TracekitError for an option that it does not take, a value of another type and an
    argument that is missing."""
    parameters = _parameters(build)
    given = dict(option.split("=", 1) for option in options)
    for name in given:
        _check_name(name, parameters, place)
    for parameter in parameters.values():
        needed = parameter.default is parameter.empty and parameter.kind not in MANY
        if needed and parameter.name not in {*given, *COMMON, *common}:
            how = f"it after --, as in -- {parameter.name}=VALUE"
            how = f"{SIZES[parameter.name]} N" if parameter.name in SIZES else how
            raise TracekitError(f"{place} needs {parameter.name}: pass {how}")
    for name in {*given} & {*SIZES} & {*common}:
        raise TracekitError(f"{SIZES[name]} and -- {name}={given[name]} are the same option: leave one out")
    shared = {name: value for name, value in common.items() if name in parameters}
    return {**shared, **{name: _typed(name, value, parameters.get(name), place) for name, value in given.items()}}


def taken(build: Callable[..., object]) -> tuple[str, ...]:
    """Which of the common arguments and of the sizes `build` names."""
    parameters = _parameters(build)
    return tuple(name for name in (*COMMON, *SIZES) if name in parameters)


def what_it_takes(build: Callable[..., object]) -> str:
    """`layers (int, 2), dtype`; `nothing` of a function without parameters."""
    return ", ".join(map(_described, _parameters(build).values())) or "nothing"


def _described(parameter: inspect.Parameter) -> str:
    """`layers (int, 2)`; of a common argument the name alone."""
    if parameter.name in COMMON:
        return parameter.name
    kind = _kind(parameter)
    known = [getattr(kind, "__name__", str(kind))] if kind else []
    known += [repr(parameter.default)] if parameter.default is not parameter.empty else []
    name = str(parameter).partition(":")[0] if parameter.kind in MANY else parameter.name
    return f"{name} ({', '.join(known)})" if known else name


def _parameters(build: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(build, eval_str=True).parameters
    except NameError:
        # Annotations that only a type checker can resolve.
        return inspect.signature(build).parameters


def _check_name(name: str, parameters: Mapping[str, inspect.Parameter], place: str) -> None:
    if name in COMMON:
        if name in parameters:
            raise TracekitError(f"{name} is not an option of {place}: {COMMON[name]}")
        raise TracekitError(f"{place} takes no {name}")
    if name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    own = [each for each in parameters.values() if each.name not in COMMON and each.kind not in MANY]
    takes = {each.name: _described(each) for each in own}
    near = difflib.get_close_matches(name, takes, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    raise TracekitError(f"{place} takes no {name}: {hint}its options: {', '.join(takes.values()) or 'none'}")


def _kind(parameter: inspect.Parameter) -> Any:
    """The type that is named, or that of the default; None if there is neither."""
    if parameter.annotation is not parameter.empty:
        return parameter.annotation
    has_default = parameter.default is not parameter.empty and parameter.default is not None
    return type(parameter.default) if has_default else None


def _typed(name: str, text: str, parameter: inspect.Parameter | None, place: str) -> Any:
    kind = _kind(parameter) if parameter is not None and parameter.kind not in MANY else None
    known = kind is not None and kind is not Any
    wanted = _wanted(kind) if known else ""
    if wanted is None:
        return text
    try:
        return msgspec.convert(text, kind if known else int | float | bool, strict=False)
    except msgspec.ValidationError:
        if not known:
            return text
        raise TracekitError(f"{place}: {name}={text} has the wrong type: pass {wanted}") from None


#: What a word must be for a type, in words.
WANTED = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", type(None): "null"}


def _wanted(kind: Any) -> str | None:
    """`a whole number or null`; None where no word can be such a value: whatever asks for it gets the word as it is."""
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(map(str, typing.get_args(kind)))
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        parts = [*map(_wanted, typing.get_args(kind))]
        return None if None in parts else " or ".join(filter(None, parts))
    return next((words for each, words in WANTED.items() if kind is each), None)
