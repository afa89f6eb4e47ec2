"""Whether this machine can profile. Each check answers one question with a `Check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "problem", "skipped"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `tracekit doctor`. `fix` is a command or a sentence that mends it; None when nothing is to be done.
    `problem`: profiling fails or measures wrongly. `warning`: something is limited. `skipped`: there was nothing to
    check here, and the message says why."""

    name: str
    status: Status
    message: str
    fix: str | None = None


def ok(name: str, message: str) -> Check:
    return Check(name, "ok", message)


def skipped(name: str, why: str) -> Check:
    return Check(name, "skipped", why)


def warning(name: str, message: str, fix: str) -> Check:
    return Check(name, "warning", message, fix)


def problem(name: str, message: str, fix: str) -> Check:
    return Check(name, "problem", message, fix)
