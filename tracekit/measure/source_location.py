"""Which module and which line is the host code at? Told from Python's own frames, so that no hook is set on a model.

Module calls are recognised by `torch.nn.Module`'s two calling methods (private to torch, 2.0 to 2.15 at least): where
they have other names no module is found, and everything is reported without one.
"""

import inspect
import os
import re
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from tracekit.model.workload import BuiltWorkload, CompileTarget

TORCH_FOLDER = f"{Path(torch.__file__).parent}{os.sep}"
MODULE_FILE = nn.modules.module.__file__
CALLING_METHODS = ("_call_impl", "_wrapped_call_impl")

#: Where tracekit lies, and its own models.
OURS = f"{Path(__file__).parents[1]}/"
OUR_MODELS = f"{OURS}workloads/"
#: What calls a model of the user's.
CALLER = f"{OUR_MODELS}own.py"
#: A frame of a stack that torch prints.
STACK_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
#: Python's own library, which may hold the packages that are installed beside it.
PYTHON, PACKAGES = f"{sysconfig.get_path('stdlib')}{os.sep}", "-packages/"
#: What of torch stands in a stack for something else: what Dynamo traces in Python's place, and calls of modules.
STAND_INS = ("torch/_dynamo/", "torch/nn/modules/module.py")
#: What Dynamo calls the function that goes on after a graph break.
RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")

#: A function, however often it is compiled anew: its file, first line and name.
Function = tuple[str, int, str]


class ModuleNames:
    """The workload's modules by name. Of a module that is in several places the first name counts."""

    def __init__(self, roots: Iterable[tuple[str, nn.Module]], targets: Iterable[CompileTarget] = ()) -> None:
        self._names: dict[int, str] = {}
        # Held, because the names go by identity.
        self._roots = [*roots]
        targets = tuple(targets)
        for name, module in (*self._roots, *((target.component, target.module) for target in targets)):
            for inner, each in module.named_modules():
                self._names.setdefault(id(each), f"{name}.{inner}" if inner else name)
        # Methods that a workload calls by their names (`vae.decode`), past the module's own call.
        self._entries: dict[Function, set[int]] = defaultdict(set)
        for target in targets:
            method = getattr(type(target.module), target.method) if target.method != "forward" else None
            while method is not None:
                code = getattr(method, "__code__", None)
                if code is not None:
                    self._entries[code.co_filename, code.co_firstlineno, code.co_name].add(id(target.module))
                method = getattr(method, "__wrapped__", None)

    def of(self, identity: int) -> str | None:
        """The name of the module of this identity."""
        return self._names.get(identity)

    def innermost(self, frame: FrameType | None) -> str | None:
        """The module whose call this frame is in; None outside of all that are known."""
        for each in _outwards(frame):
            code = each.f_code
            calling = code.co_filename == MODULE_FILE and code.co_name in CALLING_METHODS
            owners = self._entries.get((code.co_filename, code.co_firstlineno, code.co_name), ())
            if calling or owners:
                owner = id(each.f_locals.get("self"))
                name = self.of(owner) if calling or owner in owners else None
                if name is not None:
                    return name
        return None


def names_of(workload: BuiltWorkload) -> ModuleNames:
    """Names for every module of the workload."""
    return ModuleNames(workload.modules, workload.targets)


def user_line(frame: FrameType | None) -> str | None:
    """`file:line` of the innermost frame outside of torch; None where that is what of tracekit calls the model."""
    for each in _outwards(frame):
        file = each.f_code.co_filename
        if not is_torch(file) and each.f_code.co_name != "__torch_dispatch__":
            return None if is_ours(file) else f"{portable(file)}:{each.f_lineno}"
    return None


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


@cache
def is_torch(file: str) -> bool:
    """Whether a file is torch's own, also of another installation (graphs from a cache tell where they were made)."""
    return file.startswith((TORCH_FOLDER, "<")) or "/site-packages/torch/" in file


@cache
def portable(file: str) -> str:
    """The file as its package or project knows it: without the folders of this machine."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in file:
            return file.rpartition(folder)[2]
    path = Path(file)
    inside = [root for root in (Path.cwd(), *map(Path, sys.path)) if root.is_absolute() and path.is_relative_to(root)]
    return path.relative_to(max(inside, key=lambda root: len(root.parts), default=path.parent)).as_posix()


def user_frames(text: str) -> list[tuple[str, str, str]]:
    """File, line and function of each frame in a printed stack that is not torch's, the innermost last."""
    return [frame for frame in STACK_FRAME.findall(text) if not is_torch(frame[0])]


def torchs_frame(text: str) -> tuple[str, str, str] | None:
    """The innermost frame of a printed stack, where it is in torch's own code: reached from the user's, and nothing of
    theirs."""
    frames = (each for each in STACK_FRAME.findall(text) if not is_python(each[0]) and not each[0].startswith("<"))
    own = [each for each in frames if not portable(each[0]).startswith(STAND_INS)]
    return own[-1] if own and is_torch(own[-1][0]) else None


def is_python(file: str) -> bool:
    """Whether a file is of Python's own library."""
    return file.startswith(PYTHON) and PACKAGES not in file


def is_ours(file: str) -> bool:
    """Whether a file is tracekit's, and none of its models."""
    return file.startswith(OURS) and (file == CALLER or not file.startswith(OUR_MODELS))


def place(file: str | None, line: Any) -> str | None:
    """`file:line`; None where one of them is not known."""
    return f"{portable(file)}:{line}" if file and line is not None else None


def class_place(kind: type) -> str | None:
    """Where the class begins; None where its source is not there."""
    try:
        return place(inspect.getsourcefile(kind), inspect.getsourcelines(kind)[1])
    except (OSError, TypeError):
        return None


def function_name(name: str | None) -> str | None:
    """The user's own function, also of what Dynamo made to go on after a break."""
    resumed = RESUMED.match(name or "")
    return resumed[1] if resumed else name
