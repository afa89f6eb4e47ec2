"""The command that a reader is told to type next."""

from __future__ import annotations

import shlex

from tracekit.model.run import Settings


def profile_command(settings: Settings, *, mode: str) -> str:
    """Profiles the same work again, compiled in another mode."""
    words = ["tracekit", "profile", settings.workload, "--compiled", "--mode", mode, "--size", settings.size]
    words += ["--dtype", settings.dtype, "--scope", settings.scope, "--batch-size", str(settings.batch_size)]
    for option, value in (("--height", settings.height), ("--width", settings.width), ("--steps", settings.steps)):
        words += [option, str(value)] if value is not None else []
    words += _generation(settings)
    words += ["--pretrained", settings.pretrained] if settings.pretrained else []
    return shlex.join(words)


def _generation(settings: Settings) -> list[str]:
    asked = settings.generation
    if asked is None:
        return []
    words = ["--phase", asked.phase, "--cache", asked.cache]
    words += ["--max-new-tokens", str(asked.max_new_tokens)] if asked.max_new_tokens else []
    return [*words, "--use-fast" if asked.fast_processor else "--no-use-fast"]
