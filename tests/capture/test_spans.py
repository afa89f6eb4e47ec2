"""Named parts of somebody's own code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tracekit.capture import spans


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """What happens to spans while something is recorded."""
    told: list[str] = []

    @contextmanager
    def span(name: str) -> Iterator[None]:
        told.append(f"begin {name}")
        yield
        told.append(f"end {name}")

    spans.open_spans(span)
    yield told
    spans.open_spans(None)


def test_without_a_recording_a_region_is_nothing_and_nests() -> None:
    assert not spans.is_recording()
    with spans.region("outer") as outer, spans.region("outer") as inner:
        assert outer is inner is None


def test_in_a_recording_regions_open_and_end_by_their_names(opened: list[str]) -> None:
    assert spans.is_recording()
    with spans.region("forward"), spans.region("attention"):
        pass
    assert opened == ["begin forward", "begin attention", "end attention", "end forward"]


def test_a_region_ends_as_it_began_though_the_recording_ended_inside(opened: list[str]) -> None:
    with spans.region("last"):
        spans.open_spans(None)
    assert opened == ["begin last", "end last"]
    with spans.region("after"):
        pass
    assert opened == ["begin last", "end last"]
