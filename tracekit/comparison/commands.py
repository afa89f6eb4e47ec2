"""The command that a reader is told to type next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from tracekit.model.run import Settings

#: Options of `tracekit profile` that hold a setting, in the order they are written.
OPTIONS = ("mode", "size", "dtype", "scope", "batch_size", "height", "width", "steps", "pretrained")

#: Scopes that not every workload has, and those that have them (`tracekit workloads`).
SCOPES = {"all": ("flux",), "regional": ("flux", "causal-lm", "qwen2.5-vl")}


def has_scope(settings: Settings, scope: str) -> bool:
    """Whether the workload can be compiled in this scope, and was in another."""
    return settings.workload in SCOPES[scope] and settings.scope != scope


#: Those that say how to compile.
COMPILING = ("mode", "scope")


def profile_command(
    settings: Settings,
    changes: Mapping[str, str] | None = None,
    more: tuple[str, ...] = (),
    *,
    compiled: bool = True,
) -> str:
    """Profiles the same work again, with some settings changed: `profile_command(settings, {"mode": "default"})`.

    `more` are options besides. Not `compiled`: the eager form alone."""
    changes = changes or {}
    words = ["tracekit", "profile", settings.workload, *(["--compiled"] if compiled else [])]
    for name in OPTIONS if compiled else (each for each in OPTIONS if each not in COMPILING):
        value = changes.get(name, getattr(settings, name))
        words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    words += _generation(settings)
    dynamic = changes.get("dynamic", settings.dynamic)
    if dynamic is not None and compiled:
        words.append("--dynamic" if str(dynamic) == "True" else "--no-dynamic")
    if not settings.fullgraph and "--fullgraph" not in more:
        # Most workloads ask for one graph unless told otherwise, and then end at the first break.
        words.append("--no-fullgraph")
    return shlex.join([*words, *more])


def _generation(settings: Settings) -> list[str]:
    asked = settings.generation
    if asked is None:
        return []
    words = ["--phase", asked.phase, "--cache", asked.cache]
    words += ["--max-new-tokens", str(asked.max_new_tokens)] if asked.max_new_tokens else []
    return [*words, "--use-fast" if asked.fast_processor else "--no-use-fast"]
