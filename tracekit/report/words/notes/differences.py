"""Notes on what besides the compilation differs between two sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracekit.model.option import OPTIONS
from tracekit.shell import variable_words

#: What a setting, or a fact of the machine, is called.
WORDS = {each.name: each.word for each in OPTIONS} | {
    "gpu": "GPU",
    "gpus": "number of GPUs",
    "driver": "driver",
    "cuda": "CUDA version",
    "cpu": "CPU",
    "cpu_threads": "CPU threads",
    "python": "Python",
    "float32_matmul_precision": "precision of float32 products",
    "variables": "variables of the environment that steer torch",
}


def setting_differs(*, setting: str, a: Any, b: Any, **beside: str) -> str:
    return _differ(WORDS[setting], a, b, **beside)


def package_differs(*, package: str, a: str | None, b: str | None, **beside: str) -> str:
    return _differ(package, a, b, **beside)


def _differ(what: str, a: Any, b: Any, **beside: str) -> str:
    return f"{_names(**beside)}The sides differ in {what}: A has {_shown(a)}, B has {_shown(b)}."


def _names(*, a_name: str | None = None, b_name: str | None = None) -> str:
    """Which runs are meant, where there are more than two."""
    return f"{a_name} (A) and {b_name} (B): " if a_name is not None else ""


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return variable_words(value) or "none"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "none recorded" if value is None else str(value)


def one_side_generates(*, side: str) -> str:
    return f"Only {side} generates text."


def one_side_is_own(*, side: str) -> str:
    return f"Only {side} is a model of the user's own."


SENTENCES: dict[str, Callable[..., str]] = {
    each.__name__: each for each in (setting_differs, package_differs, one_side_generates, one_side_is_own)
}
