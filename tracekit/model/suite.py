"""Sweeps with a name, and other people's figures to stand beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tracekit.model.bounded import doc


@dataclass(frozen=True, slots=True)
class Published:
    """Mean milliseconds of one call without and with torch.compile, at one batch size."""

    workload: str
    checkpoint: Annotated[str | None, doc("None where it is not known which.")]
    batch_size: int
    eager_ms: float
    compiled_ms: float


@dataclass(frozen=True, slots=True)
class Suite:
    """A matrix of settings that belong together. `published` are other people's figures, `source` what is known of how
    those were measured."""

    name: str
    title: str
    workloads: tuple[str, ...]
    modes: tuple[str, ...]
    batch_sizes: tuple[int, ...]
    iterations: int | None
    size: str = "auto"
    published: tuple[Published, ...] = ()
    source: str = ""
