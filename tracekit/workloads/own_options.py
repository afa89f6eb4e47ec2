"""What stands after `--` on the command line, as arguments of a user's own `build()`."""

from __future__ import annotations

import difflib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from tracekit.errors import TracekitError

#: What tracekit hands to a `build()` that takes it, and how the user chooses it.
COMMON = {
    "batch_size": "pass --batch-size before the --",
    "dtype": "pass --dtype before the --",
    "seed": "pass --seed before the --",
    "device": "tracekit takes the GPU if there is one; CUDA_VISIBLE_DEVICES= hides it",
}


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
            raise TracekitError(f"{word!r} names no option: options after -- are NAME=VALUE or --NAME VALUE")
        if name in found:
            raise TracekitError(f"{name} is given twice after --")
        found[name] = value
    return tuple(f"{name}={value}" for name, value in found.items())


def arguments_of(
    build: Callable[..., object], place: str, options: Iterable[str], common: Mapping[str, object]
) -> dict[str, Any]:
    """The keyword arguments to call `build` with: the options, as the types that it names or has by default, and of
    `common` what it takes.

    Raises TracekitError for an option that it does not take, a value of another type and an argument that is missing.
    """
    parameters = _parameters(build)
    given = dict(option.split("=", 1) for option in options)
    for name in given:
        _check_name(name, parameters, place)
    for parameter in parameters.values():
        needed = parameter.default is parameter.empty and parameter.kind not in _MANY
        if needed and parameter.name not in given and parameter.name not in COMMON:
            raise TracekitError(f"{place} needs {parameter.name}: pass it after --, as in -- {parameter.name}=VALUE")
    shared = {name: value for name, value in common.items() if name in parameters}
    return {**shared, **{name: _typed(name, value, parameters.get(name), place) for name, value in given.items()}}


_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def taken(build: Callable[..., object]) -> tuple[str, ...]:
    """Which of the common arguments `build` names."""
    parameters = _parameters(build)
    return tuple(name for name in COMMON if name in parameters)


def _parameters(build: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(build, eval_str=True).parameters
    except NameError:
        # Annotations that only a type checker can resolve.
        return inspect.signature(build).parameters


def _check_name(name: str, parameters: Mapping[str, inspect.Parameter], place: str) -> None:
    if name in COMMON:
        if name in parameters:
            raise TracekitError(f"{name} is no option of {place}'s own: {COMMON[name]}")
        raise TracekitError(f"{place} takes no {name}")
    if name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    own = [each for each in parameters.values() if each.name not in COMMON and each.kind not in _MANY]
    near = difflib.get_close_matches(name, [each.name for each in own], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    takes = ", ".join(map(_described, own)) or "nothing"
    raise TracekitError(f"{place} takes no {name}: {hint}It takes {takes}")


def _described(parameter: inspect.Parameter) -> str:
    """`layers (int, 2)`."""
    kind = _kind(parameter)
    told = [getattr(kind, "__name__", str(kind))] if kind else []
    told += [repr(parameter.default)] if parameter.default is not parameter.empty else []
    return f"{parameter.name} ({', '.join(told)})" if told else parameter.name


def _kind(parameter: inspect.Parameter) -> Any:
    """The type that is named, or that of the default; None if there is neither."""
    if parameter.annotation is not parameter.empty:
        return parameter.annotation
    has_default = parameter.default is not parameter.empty and parameter.default is not None
    return type(parameter.default) if has_default else None


def _typed(name: str, text: str, parameter: inspect.Parameter | None, place: str) -> Any:
    known = parameter is not None and parameter.kind not in _MANY
    kind = _kind(parameter) if parameter is not None and known else None
    if kind is None or kind is Any:
        return _guessed(text)
    if not _is_simple(kind):
        return text
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        raise TracekitError(f"{place}: {name}={text} is not what it takes: say {_wanted(kind)}") from None


def _wanted(kind: Any) -> str:
    """What a word must be, in words: `a whole number or null`."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(map(_wanted, typing.get_args(kind)))
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(map(str, typing.get_args(kind)))
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "null")


def _guessed(text: str) -> int | float | bool | str:
    try:
        return msgspec.convert(text, int | float | bool, strict=False)
    except msgspec.ValidationError:
        return text


def _is_simple(kind: Any) -> bool:
    """Whether one word can be such a value; whatever else is asked for gets the word as it is."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return all(map(_is_simple, typing.get_args(kind)))
    return typing.get_origin(kind) is typing.Literal or kind in (int, float, bool, str, None, type(None))
