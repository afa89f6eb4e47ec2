"""How a model that writes text is asked to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracekit.model.bounded import Count

#: `prefill`: one forward over the prompts. `decode`: one forward over one token of each, the cache full of prompts.
Phase = Literal["generate", "prefill", "decode"]
CacheKind = Literal["dynamic", "static"]


@dataclass(frozen=True, slots=True)
class Generation:
    """What one call writes, and with which cache. `max_new_tokens` is None in a phase of its own.
    `fast_processor` is the one of torchvision, the other is PIL's."""

    phase: Phase
    max_new_tokens: Count | None
    cache: CacheKind
    fast_processor: bool
