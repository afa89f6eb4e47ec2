"""torch and the libraries that workloads are made of: are they there, new enough, and what is torch built for?"""

from __future__ import annotations

import importlib
import re
import warnings
from importlib import metadata
from types import ModuleType

from tracekit.doctor.check import Check, ok, problem, warning

#: As `pyproject.toml` has them; a test holds the two together.
OLDEST = {"torch": "2.9", "diffusers": "0.35", "transformers": "4.56"}
INSTALL = "pip install -c constraints.txt '.[profile]'  # in tracekit's checkout"


def find_torch() -> ModuleType | None:
    """The torch package, or None where it is missing or does not load (the torch check says why)."""
    try:
        import torch
    except (ImportError, OSError):
        return None
    return torch


def why_no_gpu() -> str | None:
    """Why a check that needs a GPU has nothing to look at; None where torch sees a GPU."""
    torch = find_torch()
    if torch is None:
        return "needs torch"
    # A driver too old or a broken one warns here; the GPU check tells of it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return None if torch.cuda.is_available() else "no GPU"


def check_torch_build() -> Check:
    name, torch = "torch", find_torch()
    if torch is None:
        return problem(name, _why_missing(), INSTALL)
    version, oldest = str(torch.__version__), OLDEST[name]
    message = f"{version}, {_build(torch)}"
    if is_older(version, oldest):
        return warning(name, f"{message}; older than {oldest}, untried", f"pip install -U 'torch>={oldest}'")
    return ok(name, message)


def _why_missing() -> str:
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as error:
        return "not installed" if error.name == "torch" else f"does not load: {error}"
    except (ImportError, OSError) as error:
        return f"does not load: {str(error).splitlines()[0]}"
    return "loads only at times"


def _build(torch: ModuleType) -> str:
    if torch.version.cuda:
        return f"built for CUDA {torch.version.cuda}"
    if torch.version.hip:
        return f"built for ROCm {torch.version.hip}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "built for XPU" if torch.xpu._is_compiled() else "built for CPU alone"


def check_diffusers() -> Check:
    return _check_library("diffusers")


def check_transformers() -> Check:
    return _check_library("transformers")


def _check_library(name: str) -> Check:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return problem(name, "not installed; workloads are made of it", INSTALL)
    if is_older(version, OLDEST[name]):
        return problem(name, f"{version} is older than {OLDEST[name]}", f"pip install -U '{name}>={OLDEST[name]}'")
    return ok(name, version)


def is_older(version: str, than: str) -> bool:
    """`2.13.0+cpu` is not older than `2.9`. Only the numbers count, so `2.9.0rc1` is not older than `2.9`."""
    return _numbers(version) < _numbers(than)


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"\d+(\.\d+)*", version)
    if release is None:
        raise ValueError(f"{version!r} does not begin with a number")
    numbers = [int(part) for part in release[0].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
