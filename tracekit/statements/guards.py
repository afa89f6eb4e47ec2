"""Checks of compiled code, in words."""

from collections.abc import Mapping
from typing import Any


def check_sentence(facts: Mapping[str, Any]) -> str:
    """`size 0 of x is 4, compiled for 1`: the facts of a `FailedGuard`; guards of a kind not known as torch writes
    them."""
    kind, name, then = facts["kind"], facts.get("name"), facts.get("then")
    if kind == "size":
        return f"size {facts['index']} of {name} is {facts['now']}, compiled for {then}"
    if kind == "size_many":
        return f"size {facts['index']} of {name} is 1 or 0, compiled for 2 or more"
    if kind == "tensor":
        at = f" {facts['index']}" if facts["index"] else ""
        return f"{facts['what']}{at} of {name} is {facts['now']}, compiled for {then}"
    if kind == "length":
        return f"length of {name} changed, compiled for {then}"
    if kind == "function" and then:
        return f"{name} is another function, compiled for {then['function']} ({then['file']}:{then['line']})"
    if kind == "type":
        return f"{name} has another type{f', compiled for {then}' if then else ''}"
    if kind in ("function", "object"):
        return f"{name} is another {kind}"
    return f"guard {facts['check']} failed"
