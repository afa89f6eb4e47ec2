"""How a model that writes text is asked to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tracekit.model.bounded import Count, doc

#: `prefill`: one forward over the prompts. `decode`: one forward over one token of each, the cache full of prompts.
Phase = Literal["generate", "prefill", "decode"]
CacheKind = Literal["dynamic", "static"]


@dataclass(frozen=True, slots=True)
class Generation:
    """What one call writes, and with which cache."""

    phase: Phase
    max_new_tokens: Annotated[Count | None, doc("None in a phase of its own.")]
    cache: CacheKind
    fast_processor: Annotated[bool, doc("torchvision's; the other is PIL's.")]
