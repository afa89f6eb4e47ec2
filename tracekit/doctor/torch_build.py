"""Is torch there, does it load, and what was it built for?"""

from __future__ import annotations

import importlib
import warnings

from tracekit.doctor.accelerator import find_torch
from tracekit.doctor.check import Check, ok, problem, warning
from tracekit.doctor.versions import is_older

NAME = "torch"
OLDEST = "2.9"
INSTALL = "pip install -c constraints.txt '.[profile]'  # in tracekit's checkout"


def check_torch_build() -> Check:
    torch = find_torch()
    if torch is None:
        return problem(NAME, _why_missing(), INSTALL)
    version = str(torch.__version__)
    message = f"{version}, {_build()}"
    if is_older(version, OLDEST):
        return warning(NAME, f"{message}; older than {OLDEST}, untried", f"pip install -U 'torch>={OLDEST}'")
    return ok(NAME, message)


def _why_missing() -> str:
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as error:
        return "not installed" if error.name == "torch" else f"does not load: {error}"
    except (ImportError, OSError) as error:
        return f"does not load: {str(error).splitlines()[0]}"
    return "loads only at times"


def _build() -> str:
    import torch

    if torch.version.cuda:
        return f"built for CUDA {torch.version.cuda}"
    if torch.version.hip:
        return f"built for ROCm {torch.version.hip}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "built for XPU" if torch.xpu._is_compiled() else "built for CPU alone"
