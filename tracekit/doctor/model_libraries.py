"""Are the libraries that workloads are made of there, and new enough?"""

from __future__ import annotations

from importlib import metadata

from tracekit.doctor.check import Check, ok, problem
from tracekit.doctor.torch_build import INSTALL
from tracekit.doctor.versions import is_older

#: As `pyproject.toml` has them; a test holds the two together.
OLDEST = {"diffusers": "0.35", "transformers": "4.56"}


def check_diffusers() -> Check:
    return _check("diffusers")


def check_transformers() -> Check:
    return _check("transformers")


def _check(name: str) -> Check:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return problem(name, "not installed; workloads are made of it", INSTALL)
    if is_older(version, OLDEST[name]):
        return problem(name, f"{version} is older than {OLDEST[name]}", f"pip install -U '{name}>={OLDEST[name]}'")
    return ok(name, version)
