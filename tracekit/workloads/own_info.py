"""A user's own model as a line of the list: `my_model.py:build` or `package.module:build`."""

from __future__ import annotations

import difflib
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from tracekit.errors import TracekitError
from tracekit.model.workload import WorkloadInfo

#: What stands before a colon and is no module.
HUBS = ("hf", "diffusers")
#: The one size there is.
SIZE = "own"


def is_own(name: str) -> bool:
    """Whether the name is of a user's own model: a Python file or a dotted module, a colon, a function."""
    where, colon, _ = name.rpartition(":")
    if not colon:
        return name.endswith(".py")
    return where.endswith(".py") or (where not in HUBS and all(part.isidentifier() for part in where.split(".")))


def split_name(name: str) -> tuple[str, str]:
    """The file or module, and the function in it."""
    where, _, function = name.rpartition(":")
    return where, function


def is_file(where: str) -> bool:
    """Whether a file is meant, and not a module."""
    return where.endswith(".py")


def check_module(name: str) -> None:
    """Raises TracekitError where the named package or module is not here. What is in it is told once it is loaded."""
    where, function = split_name(name)
    top = where.partition(".")[0]
    if is_file(where) or top in {*sys.builtin_module_names, *sys.modules}:
        return
    if PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is None:
        near = difflib.get_close_matches(where, HUBS, n=1)
        if near:
            raise TracekitError(f"there is no module {where} here: did you mean {near[0]}:{function}?")
        raise no_such_module(where)


def no_such_module(module: str) -> TracekitError:
    """The error for a module that is not there."""
    return TracekitError(
        f"there is no module {module} here ({Path.cwd()}) nor among what is installed:"
        " name a file as my_model.py:build, or start from the folder that holds the package"
    )


def own_info(name: str) -> WorkloadInfo:
    """What is known of the model before its code is run. Raises TracekitError for a file that is not there, and where
    no function is named."""
    where, function = split_name(name)
    if not function.isidentifier():
        where = where or name
        raise TracekitError(f"{name}: name the function that builds the model too, as in {where}:build")
    if is_file(where) and not Path(where).is_file():
        # Of a folder that is not there nothing is found.
        near = difflib.get_close_matches(str(Path(where)), map(str, Path(where).parent.glob("*.py")), n=1)
        hint = f"did you mean {near[0]}:{function}?" if near else "name one as my_model.py:build"
        raise TracekitError(f"there is no file {where} here ({Path.cwd()}): {hint}")
    return described(name, f"as {function}() makes it")


def described(name: str, size: str) -> WorkloadInfo:
    """A model of the user's own; `size` says in words how large it is."""
    return WorkloadInfo(
        name=name,
        title="a model of your own",
        module="tracekit.workloads.own",
        sizes={SIZE: size},
        memory_gib={},
        scopes={"model": "all that it hands over"},
        fullgraph=False,
        extra="profile",
        takes=("options",),
        resizes=True,
        torch_alone=True,
    )
