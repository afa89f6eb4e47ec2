"""Code was compiled more than once before the form was quiet."""

from __future__ import annotations

from typing import Any


def title(facts: dict[str, Any]) -> str:
    return f"{facts['side']} was compiled again {facts['times']} times before it was quiet"


def evidence(facts: dict[str, Any]) -> str:
    function, where = facts["function"] or "A function", facts["where"] or "place not told"
    return f"{function} ({where}): {facts['failed_check']}.{_took(facts)}"


def _took(facts: dict[str, Any]) -> str:
    dearest, whole = facts["dearest_s"], facts["whole_s"]
    if facts["times"] == 1 or dearest is None:
        return f" It took {whole:.1f} s."
    return f" It took {dearest:.1f} s, all together {whole:.1f} s."
