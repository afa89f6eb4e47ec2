"""The JSON contract of a sweep: `tracekit.sweep/1`. Changes are additive only."""

from __future__ import annotations

import msgspec

from tracekit.model.sweep_figures import Sweep


def sweep_json(sweep: Sweep) -> str:
    """The sweep as it is; what is no number was not measured, and is null."""
    return msgspec.json.format(msgspec.json.encode(sweep), indent=1).decode() + "\n"
