"""What a workload's call returns, as tensors by their place in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Output:
    """The tensors of one call's output, copied to the host, by their path in it; and the kinds of things left out."""

    tensors: dict[str, torch.Tensor]
    skipped: tuple[str, ...]


def keep_output(returned: object) -> Output:
    """Copies every tensor of `returned` to the host: dictionaries, lists, tuples and dataclasses are walked through,
    with the outputs of transformers and diffusers among them. Nothing, texts and lone numbers are not counted as left
    out."""
    tensors: dict[str, torch.Tensor] = {}
    skipped: dict[str, None] = {}
    for path, leaf in _leaves(returned, ""):
        if isinstance(leaf, torch.Tensor):
            # A CUDA graph's output is overwritten by the next call.
            tensors[path] = leaf.detach().to("cpu", copy=True)
        elif isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fiub":
            tensors[path] = torch.from_numpy(leaf.copy())
        elif leaf is not None and not isinstance(leaf, str | bool | int | float):
            skipped[type(leaf).__name__] = None
    return Output(tensors, tuple(skipped))


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    # The outputs of transformers and diffusers are dataclasses and dictionaries at once, with the same fields as both.
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{path}[{index}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _leaves(getattr(value, field.name), f"{path}.{field.name}")
    else:
        yield path, value
