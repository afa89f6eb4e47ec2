"""Are Python's C headers there? Triton's launcher and Inductor's C++ code include `Python.h`."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from tracekit.doctor.check import Check, ok, problem

NAME = "python headers"


def check_python_headers() -> Check:
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if header.is_file():
        return ok(NAME, str(header))
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
    return problem(NAME, f"{header} is missing; torch.compile cannot build its code", f"apt install {package}")
