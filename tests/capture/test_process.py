from __future__ import annotations

from types import FunctionType

import pytest
from tests.stack_depths import count_crossings

from tracekit.capture.process import call_in_one_chunk


def at_depth(depth: int) -> int:
    return at_depth(depth - 1) if depth else call_in_one_chunk(count_crossings)


def test_with_room_no_depth_is_dearer_than_others() -> None:
    if not count_crossings():
        pytest.skip("this Python keeps the chunk")
    assert [at_depth(depth) for depth in range(0, 200, 20)] == [0] * 10


def below_large_frames(frames: int) -> int:
    """The crossings below so many frames of 480 bytes at least."""
    return _below_large_frame(frames - 1) if frames else count_crossings(40)


_below_large_frame = FunctionType(below_large_frames.__code__.replace(co_stacksize=60), globals())


def test_there_is_room_for_nearly_a_thousand_frames_of_480_bytes() -> None:
    if not count_crossings():
        pytest.skip("this Python keeps the chunk")
    assert [call_in_one_chunk(lambda: below_large_frames(frames)) for frames in range(0, 800, 33)] == [0] * 25  # noqa: B023


def test_what_comes_back_and_what_is_raised_is_the_works() -> None:
    assert call_in_one_chunk(lambda: "done") == "done"
    with pytest.raises(ZeroDivisionError):
        call_in_one_chunk(lambda: 1 // 0)
