"""The command that a reader is told to type next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from tracekit.model.run import Settings

#: Options of `tracekit profile` that hold a setting, in the order they are written.
OPTIONS = ("mode", "size", "dtype", "scope", "batch_size", "height", "width", "seq_length", "steps", "pretrained")


def profile_command(settings: Settings, changes: Mapping[str, str] | None = None, more: tuple[str, ...] = ()) -> str:
    """Profiles the same work again, with some settings changed: `profile_command(settings, {"mode": "default"})`.

    `more` are options besides."""
    changes = changes or {}
    words = ["tracekit", "profile", settings.workload, "--compiled"]
    for name in OPTIONS:
        value = changes.get(name, getattr(settings, name))
        words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    words += _generation(settings)
    dynamic = changes.get("dynamic", settings.dynamic)
    if dynamic is not None:
        words.append("--dynamic" if str(dynamic) == "True" else "--no-dynamic")
    return shlex.join([*words, *more])


def _generation(settings: Settings) -> list[str]:
    asked = settings.generation
    if asked is None:
        return []
    words = ["--phase", asked.phase, "--cache", asked.cache]
    words += ["--max-new-tokens", str(asked.max_new_tokens)] if asked.max_new_tokens else []
    return [*words, "--use-fast" if asked.fast_processor else "--no-use-fast"]
