"""What each difference from published figures says: read the snapshot when it changes."""

from syrupy.assertion import SnapshotAssertion

from tracekit.sweep.figures import PublishedDifference
from tracekit.sweep.reading import published

EVERY = (
    published.Machine(here=["NVIDIA H200", "NVIDIA A100"]),
    published.Torch(here=["2.11.0"]),
    published.Dtype(here=["bfloat16", "float16"]),
    published.RandomWeights(),
    published.Size(here=["tiny"]),
    published.Calls(least=40, most=40),
    published.Calls(least=40, most=1200),
    published.WhatACallContains(),
)


def test_every_difference_reads_well(snapshot: SnapshotAssertion) -> None:
    assert [each.long() for each in EVERY] == snapshot


def test_every_difference_is_here() -> None:
    assert {*map(type, EVERY)} == {*PublishedDifference.classes.values()}
