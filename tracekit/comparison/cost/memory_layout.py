"""How do the data of a convolution lie in memory? Its strides tell, and which kernels it may get depends on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tracekit.comparison.cost.convolutions import find_convolution
from tracekit.model.sequence import Activity, Operator

Layout = Literal["channels first", "channels last"]


def find_layout(operator: Operator) -> Layout | None:
    """Of what a convolution is given, by its strides: channels are last where neighbouring channels lie nearest to each
    other, as in torch.channels_last (NHWC), and first where they lie furthest apart (NCHW).

    None of any other operator, where strides were not recorded, and where there is but one channel or one place: then
    both are the same. Nor where one value stands for all channels or places (a stride of 0).
    """
    if find_convolution(operator) is None or not operator.strides or len(operator.strides[0]) != len(operator.dims[0]):
        return None
    (_, channels, *lengths), (_, apart, *steps) = operator.dims[0], operator.strides[0]
    places = [step for length, step in zip(lengths, steps, strict=True) if length > 1]
    if channels < 2 or not places or 0 in (apart, *places):
        return None
    return "channels last" if apart < min(places) else "channels first" if apart > max(places) else None


def find_layouts(activities: Iterable[Activity]) -> set[Layout]:
    """Of all convolutions among them that tell."""
    found = (find_layout(each.operator) for each in activities if each.operator)
    return {layout for layout in found if layout}


def moved_last(a: Iterable[Activity], b: Iterable[Activity]) -> bool:
    """Whether channels were first in A and are last in B, of every convolution among them that tells."""
    return find_layouts(a) == {"channels first"} and find_layouts(b) == {"channels last"}
