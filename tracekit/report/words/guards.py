"""Checks that compiled code did not pass, in English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.model.compilation import FailedGuard


def guard_sentence(guard: FailedGuard) -> str:
    """`size 0 of x is 4, and was 1 when it was compiled`."""
    return check_sentence(guard.facts)


def check_sentence(facts: Mapping[str, Any]) -> str:
    """The facts of a `FailedGuard` in English; checks of a kind not known as torch writes them."""
    kind, name, then = facts["kind"], facts.get("name"), facts.get("then")
    if kind == "size":
        return f"size {facts['index']} of {name} is {facts['now']}, and was {then} when it was compiled"
    if kind == "size_many":
        return f"size {facts['index']} of {name} is 1 or 0, and was neither when it was compiled"
    if kind == "tensor":
        at = f" {facts['index']}" if facts["index"] else ""
        return f"the {facts['what']}{at} of {name} is {facts['now']}, and was {then} when it was compiled"
    if kind == "length":
        return f"the length of {name} is no longer {then}, as it was when it was compiled"
    if kind == "function" and then:
        was = f"{then['function']} ({then['file']}:{then['line']})"
        return f"{name} is another function than {was}, for which it was compiled"
    if kind == "type":
        return f"{name} is of another type than {then or 'the one'}, for which it was compiled"
    if kind in ("function", "object"):
        return f"{name} is another {kind} than the one for which it was compiled"
    return f"the check {facts['check']} failed"
