"""Is setuptools there? Python brings it no more since 3.12, and torch.compile still asks for it."""

from __future__ import annotations

import sys
from importlib import metadata

from tracekit.doctor.check import Check, ok, problem

NAME = "setuptools"
IS_NEEDED: bool = sys.version_info >= (3, 12)


def check_setuptools() -> Check:
    try:
        return ok(NAME, metadata.version("setuptools"))
    except metadata.PackageNotFoundError:
        if not IS_NEEDED:
            return ok(NAME, "not installed, and not needed before Python 3.12")
        return problem(NAME, "not installed; torch.compile needs it", "pip install setuptools")
