from __future__ import annotations

import pytest

from tracekit.comparison.cost.convolutions import find_layout, moved_last
from tracekit.model.sequence import Activity, Operator

Sizes = tuple[int, ...]


def convolution(data: Sizes, strides: Sizes, name: str = "aten::cudnn_convolution") -> Operator:
    weight = (8, data[1], *(1 for _ in data[2:]))
    return Operator(name, (data, weight), ("float", "float"), strides=(strides, (data[1], *(1 for _ in weight[1:]))))


@pytest.mark.parametrize(
    ("data", "strides", "layout"),
    [
        ((16, 32, 257, 259), (32 * 257 * 259, 257 * 259, 259, 1), "channels first"),
        ((16, 32, 257, 259), (32 * 257 * 259, 1, 259 * 32, 32), "channels last"),
        # Rows with room behind them.
        ((2, 3, 4, 5), (3 * 4 * 8, 4 * 8, 8, 1), "channels first"),
        ((2, 3, 4, 5), (4 * 8 * 3, 1, 8 * 3, 3), "channels last"),
        # One dimension, and three.
        ((2, 3, 50), (150, 50, 1), "channels first"),
        ((2, 3, 50), (150, 1, 3), "channels last"),
        ((2, 3, 4, 5, 6), (360, 1, 90, 18, 3), "channels last"),
        # Both at once: one place, one channel.
        ((2, 3, 1, 1), (3, 1, 1, 1), None),
        ((2, 1, 4, 5), (20, 20, 5, 1), None),
        # Neither: channels between rows and columns.
        ((2, 3, 4, 5), (60, 5, 15, 1), None),
        # One value for all channels, or all rows: they lie nowhere.
        ((2, 3, 4, 5), (20, 0, 5, 1), None),
        ((2, 3, 4, 5), (60, 20, 0, 1), None),
        # A row of one place, whose stride says nothing.
        ((2, 3, 1, 5), (15, 1, 15, 3), "channels last"),
        ((2, 3, 1, 5), (15, 5, 5, 1), "channels first"),
    ],
)
def test_strides_say_where_the_channels_lie(data: Sizes, strides: Sizes, layout: str | None) -> None:
    assert find_layout(convolution(data, strides)) == layout


def test_where_strides_were_not_recorded_or_nothing_is_convolved_there_is_no_layout() -> None:
    known = convolution((2, 3, 4, 5), (60, 1, 15, 3))
    assert find_layout(Operator(known.name, known.dims, known.dtypes)) is None
    assert find_layout(convolution((2, 3, 4, 5), (60, 1))) is None
    assert find_layout(convolution((2, 3, 4, 5), (60, 1, 15, 3), name="aten::mm")) is None


FIRST, LAST = ((2, 3, 4, 5), (60, 20, 5, 1)), ((2, 3, 4, 5), (60, 1, 15, 3))


@pytest.mark.parametrize(
    ("a", "b", "moved"),
    [
        ([FIRST], [LAST], True),
        ([FIRST, FIRST], [LAST, LAST], True),
        ([LAST], [LAST], False),
        ([FIRST], [FIRST], False),
        ([LAST], [FIRST], False),
        # Some of them only.
        ([FIRST, FIRST], [FIRST, LAST], False),
        ([FIRST, LAST], [LAST, LAST], False),
        ([FIRST], [], False),
    ],
)
def test_channels_moved_where_all_were_first_and_all_are_last(
    a: list[tuple[Sizes, Sizes]], b: list[tuple[Sizes, Sizes]], moved: bool
) -> None:
    one, other = ([Activity("k", "convolution", 1.0, convolution(*each)) for each in side] for side in (a, b))
    assert moved_last(one, other) is moved
