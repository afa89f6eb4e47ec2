"""Compiling costs so much at the start that it takes many calls to pay."""

from __future__ import annotations

from typing import Any

from tracekit.numbers import calls_span, duration


def title(facts: dict[str, Any]) -> str:
    return f"Compiling pays after {calls_span(facts['calls'], facts['calls_at_most'])} calls"


def evidence(facts: dict[str, Any]) -> str:
    return (
        f"Starting up compiled takes {duration(facts['startup_us'])} more than steady calls, and each call saves "
        f"{_saved(facts)}.{_warm(facts['warm'])} For fewer calls in one process keep Inductor's cache between "
        "processes (TORCHINDUCTOR_CACHE_DIR, or torch.compiler.save_cache_artifacts)"
        f"{', or compile one block of many' if facts['can_be_regional'] else ''}."
        f"{'' if facts['warm_was_measured'] else ' What a warm cache saves was not measured: --startup does.'}"
    )


def _saved(facts: dict[str, Any]) -> str:
    """By the speed-up, as the number of calls is; said where the two medians differ by something else."""
    saved, apart_us = duration(facts["call_saving_us"]), facts["medians_apart_us"]
    between = duration(apart_us) if apart_us is not None else saved
    return saved if between == saved else f"{saved} (by the speed-up of the rounds; the medians are {between} apart)"


def _warm(warm: dict[str, Any] | None) -> str:
    """What a warm cache makes of it, where that was measured."""
    if warm is None:
        return ""
    pays = calls_span(warm["calls"], warm["calls_at_most"])
    return f" With a warm cache it takes {duration(warm['startup_us'])} and pays after {pays}."
