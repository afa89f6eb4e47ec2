"""Something ran eager that was to be compiled."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import percent

TITLES: dict[str, str] = {
    "recompile_limit": "{} was compiled so often that torch gave up: it runs eager",
    "skipped": "Dynamo passed over {}: it runs eager",
    "error": "{} could not be compiled: it runs eager",
}


def title(facts: dict[str, Any]) -> str:
    part = facts["part"]
    return TITLES[part["kind"]].format(_place(part)) if part else f"{facts['side']} ran eager"


def evidence(facts: dict[str, Any]) -> str:
    part = facts["part"]
    return f"{part['reason'] if part else 'torch.compile gave no reason'}. {_share(facts)}"


def _place(part: dict[str, Any]) -> str:
    """`forward (model.py:12)`."""
    named = part["function"] or "a frame without a name"
    return f"{named} ({part['where']})" if part["where"] else named


def _share(facts: dict[str, Any]) -> str:
    if facts["ran_eager"]:
        return "No recorded step entered compiled code."
    if facts["eager_gpu_share"] is None:
        return "The rest ran compiled."
    return f"{percent(facts['eager_gpu_share'], 0)} of GPU time was launched outside of compiled code."
