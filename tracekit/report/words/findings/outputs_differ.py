"""Compiled code computes something else than eager code."""

from __future__ import annotations

from typing import Any


def title(facts: dict[str, Any]) -> str:
    return f"{facts['b']} computes something else than {facts['a']}"


def evidence(facts: dict[str, Any]) -> str:
    return str(facts["because"])
