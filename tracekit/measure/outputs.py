"""What a workload's call returns, as tensors by their place in it, and how far those of two calls are from each other:
in float64, piece by piece."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from msgspec import Struct
from msgspec.structs import replace

from tracekit.model.numerics import Other, OutputDifference, TensorDifference
from tracekit.statements.noted import InOneOutputOnly, ShapesDiffer

#: Elements compared at a time: two pieces in float64 are 128 MiB.
PIECE = 2**23


class Output(Struct, frozen=True):
    """The tensors of one call's output, copied to the host, by their path in it; and the kinds of things left out."""

    tensors: dict[str, torch.Tensor]
    skipped: tuple[str, ...]


def keep_output(returned: object) -> Output:
    """Copies every tensor of `returned` to the host, from within dictionaries, lists, tuples and dataclasses. None,
    texts and lone numbers are not counted as left out."""
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


def compare_outputs(output: Output, other: Output, name: Other, device: str) -> OutputDifference:
    """`output` beside `other`, every tensor of either; computed on `device`."""
    paths = dict.fromkeys((*output.tensors, *other.tensors))
    compared = (_compare(path, output.tensors.get(path), other.tensors.get(path), device) for path in paths)
    return OutputDifference(name, tuple(compared))


def _compare(path: str, one: torch.Tensor | None, other: torch.Tensor | None, device: str) -> TensorDifference:
    here = one if one is not None else other
    assert here is not None
    found = TensorDifference(path, str(here.dtype).removeprefix("torch."), tuple(here.shape), here.numel())
    if one is None or other is None:
        return replace(found, mismatch=InOneOutputOnly())
    counts = not (one.is_floating_point() or one.is_complex())
    if one.shape != other.shape and not (counts and one.shape[:-1] == other.shape[:-1] and one.ndim):
        return replace(found, mismatch=ShapesDiffer(tuple(one.shape), tuple(other.shape)))
    if not counts:
        return replace(found, **_errors(one, other, device))
    if one.ndim == 0:
        return replace(found, equal_share=float(torch.equal(one, other.to(one.dtype))))
    # Rows of different length (one stopped generating before the other) are equal as far as both go; what one has more
    # counts as different.
    common, longest = min(one.shape[-1], other.shape[-1]), max(one.shape[-1], other.shape[-1])
    equal = (one[..., :common] == other[..., :common]).reshape(-1, common)
    whole = equal.shape[0] * longest
    diverged = torch.nonzero(~equal.all(dim=0)).flatten()
    first = int(diverged[0]) if len(diverged) else (common if common != longest else None)
    return replace(found, equal_share=int(equal.sum()) / whole if whole else None, first_divergence=first)


def _errors(one: torch.Tensor, other: torch.Tensor, device: str) -> dict[str, Any]:
    """The figures of `TensorDifference`, all but `equal_share` of the elements that are finite in both."""
    real = (torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in (one, other))
    flat, against = (each.reshape(-1) for each in real)
    elements, finite, equal, nonfinite, largest, other_largest = flat.numel(), 0, 0, 0, 0.0, 0.0
    # Of absolute differences, of their squares, of both sides' squares, and of their products.
    sums = np.zeros(5)
    for start in range(0, elements, PIECE):
        a, b = (each[start : start + PIECE].to(device).double() for each in (flat, against))
        both = torch.isfinite(a) & torch.isfinite(b)
        same = (a == b) | (torch.isnan(a) & torch.isnan(b))
        equal += int(same.sum())
        nonfinite += int((~both & ~same).sum())
        a, b = a[both], b[both]
        difference = (a - b).abs()
        if len(a):
            finite += len(a)
            largest = max(largest, float(difference.max()))
            other_largest = max(other_largest, float(b.abs().max()))
        sums += [float(each.sum()) for each in (difference, difference.square(), a.square(), b.square(), a * b)]
    absolute, squares, one_squares, other_squares, dot = sums.tolist()
    norms = math.sqrt(one_squares) * math.sqrt(other_squares)
    return {
        "max_abs": largest if finite else None,
        "mean_abs": absolute / finite if finite else None,
        "relative": math.sqrt(squares / other_squares) if other_squares else None,
        "cosine": min(max(dot / norms, -1.0), 1.0) if norms else None,
        "other_max": other_largest if finite else None,
        "equal_share": equal / elements if elements else None,
        "nonfinite": nonfinite,
    }
