"""Is this Python one that tracekit and torch run on?"""

from __future__ import annotations

import platform
import sys

from tracekit.doctor.check import Check, ok, problem, warning

NAME = "python"
OLDEST = (3, 11)
#: The newest that has been tried.
NEWEST = (3, 14)


def check_python_version() -> Check:
    version = platform.python_version()
    if sys.version_info < OLDEST:
        return problem(
            NAME, f"{version} is too old", "make a new environment with Python 3.12: python3.12 -m venv .venv"
        )
    if sys.version_info[:2] > NEWEST:
        return warning(NAME, f"{version} is newer than any tried", "if torch misbehaves: python3.12 -m venv .venv")
    return ok(NAME, f"{version} at {sys.executable}")
