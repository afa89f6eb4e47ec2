"""What can be told of a user's file or module by reading it, before torch is loaded and any of it is run."""

from __future__ import annotations

import ast
import difflib
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from tracekit.errors import TracekitError
from tracekit.workloads.own_info import HUBS, is_file, split_name
from tracekit.workloads.own_options import check_options

#: Annotations by which a word can be tried; what others mean is known once the file is run.
SIMPLE: dict[str, Any] = {kind.__name__: kind for kind in (int, float, bool, str)}


def look_at(name: str, options: Iterable[str]) -> None:
    """Raises TracekitError where the file or module is not there or is no Python, has no such function, or its
    function does not take these options. What only running it can tell is left for then."""
    where, function = split_name(name)
    path = Path(where) if is_file(where) else _source_of(where, name)
    if path is None:
        return
    tree = _parsed(path, where)
    defined = dict(_defined(tree.body))
    if function not in defined and not _defines_more(tree):
        raise no_such_function(where, function, (each for each, node in defined.items() if _is_builder(each, node)))
    found = defined.get(function)
    # A decorator may take other arguments, and in an `if` there may be another function of that name.
    if isinstance(found, ast.FunctionDef) and found in tree.body and not found.decorator_list:
        check_options({each.name: each for each in _parameters(found.args)}, name, options)


def no_such_function(where: str, name: str, there: Iterable[str]) -> TracekitError:
    """The error for a function that is not there, with the nearest of those that are."""
    own = [*there]
    near = difflib.get_close_matches(name, own, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {near[0]}?"
    elif own:
        hint = f"it has {', '.join(own)}"
    else:
        hint = "it has none at all; write one that returns the model with its inputs"
    return TracekitError(f"{where} has no function {name!r}: {hint}")


def _source_of(module: str, name: str) -> Path | None:
    """The module's file; None for one that is not written in Python. No package is imported on the way."""
    places: Sequence[str] | None = [str(Path.cwd()), *sys.path]
    spec: ModuleSpec | None = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, places) if places is not None else None
        if spec is None:
            # What is built into Python has no place; neither do modules that others make.
            if part in sys.builtin_module_names or module in sys.modules:
                return None
            raise _no_such_module(module, name)
        places = spec.submodule_search_locations
    origin = spec.origin if spec else None
    return Path(origin) if origin and origin.endswith(".py") else None


def _no_such_module(module: str, name: str) -> TracekitError:
    near = difflib.get_close_matches(module, HUBS, n=1)
    if near:
        return TracekitError(f"there is no module {module} here: did you mean {near[0]}:{split_name(name)[1]}?")
    return TracekitError(
        f"there is no module {module} here ({Path.cwd()}) nor among what is installed:"
        " name a file as my_model.py:build, or start from the folder that holds the package"
    )


def _parsed(path: Path, shown: str) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        if not isinstance(error, SyntaxError):
            raise TracekitError(f"{shown} is no Python: {error}") from None
        place = f"{shown}, line {error.lineno}" if error.lineno else shown
        raise TracekitError(f"{place} is no Python: {error.msg}: {(error.text or '').strip()!r}") from None


def _defined(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """What stands at the top of the file, by name, also in an `if` or a `try`."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((each.asname or each.name.partition(".")[0], node) for each in node.names)
        else:
            yield from ((each.id, node) for each in _names_bound(node))
            for inner in ("body", "orelse", "finalbody"):
                yield from _defined(getattr(node, inner, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _defined(handler.body)


def _names_bound(node: ast.stmt) -> Iterator[ast.Name]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))


def _is_builder(name: str, node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and not name.startswith("_")


def _defines_more(tree: ast.Module) -> bool:
    """Whether names may come from elsewhere: everything of another module, or by hand."""
    by_hand = {"globals", "setattr", "exec", "vars"}
    return any(
        (isinstance(node, ast.ImportFrom) and any(each.name == "*" for each in node.names))
        or (isinstance(node, ast.Name) and node.id in by_hand)
        or (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")
        for node in ast.walk(tree)
    )


def _parameters(given: ast.arguments) -> Iterator[inspect.Parameter]:
    """A function's parameters as far as its text tells them: of types those that everybody has, of defaults what is
    written."""
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [*([None] * (len(positional) - len(given.defaults))), *given.defaults]
    for each, default in zip(positional, defaults, strict=True):
        yield _parameter(each, default, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if given.vararg:
        yield _parameter(given.vararg, None, inspect.Parameter.VAR_POSITIONAL)
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _parameter(each, default, inspect.Parameter.KEYWORD_ONLY)
    if given.kwarg:
        yield _parameter(given.kwarg, None, inspect.Parameter.VAR_KEYWORD)


def _parameter(each: ast.arg, default: ast.expr | None, kind: Any) -> inspect.Parameter:
    written = ast.unparse(each.annotation).strip("'\"") if each.annotation else None
    return inspect.Parameter(
        each.arg,
        kind,
        annotation=inspect.Parameter.empty if written is None else SIMPLE.get(written, written),
        default=inspect.Parameter.empty if default is None else _value(default),
    )


def _value(default: ast.expr) -> Any:
    try:
        return ast.literal_eval(default)
    except ValueError:
        return _Written(ast.unparse(default))


class _Written(str):
    """A default that only running the file would tell, shown as it is written."""

    __slots__ = ()
    __repr__ = str.__str__
