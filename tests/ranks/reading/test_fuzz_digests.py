"""Traces that are damaged in keys and values, as digests and as ranks of a job."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.fuzzing import fuzzed
from tests.tracefile.test_fuzz_traces import SOUND, ask_damaged, damages

from tracekit.model.trace import Trace
from tracekit.ranks.digest_file import digest_bytes, read_digest
from tracekit.ranks.fault import checked
from tracekit.ranks.reading.rank_digest import digest_rank
from tracekit.ranks.telling import join_ranks
from tracekit.tracefile.read import read_trace


def joined(trace: Trace, window: str) -> None:
    """Of two ranks, one of which recorded the same a little later. What a trace gives a digest gives back."""
    made = checked(digest_rank(trace, window=window), trace.path)
    digest = read_digest(digest_bytes(made), trace.path)
    assert digest.stated() == made.stated() and digest.collectives.equals(made.collectives)
    other = replace(digest, rank=1, origin_ns=digest.origin_ns + 3000, path="other.json")
    for each in join_ranks([replace(digest, rank=0), replace(other, world_size=digest.world_size)]).ranks:
        parts = each.compute_us + each.exposed_us + each.idle_us
        assert parts == pytest.approx(each.span_us, abs=1e-3)
        assert sum(cause.us for cause in each.idle_causes) == pytest.approx(each.idle_us, abs=1e-3)


@fuzzed(20)
@given(damages, st.sampled_from(("auto", "whole")))
def test_damaged_keys_and_values_give_ranks_that_add_up_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, damages: list[tuple[int, str | int]], window: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed-rank.json"
    ask_damaged(path, damages, "collectives", lambda trace: joined(trace, window))


def test_the_trace_that_is_damaged_joins_before(tmp_path: Path) -> None:
    path = tmp_path / "sound.json"
    path.write_text(SOUND)
    trace = read_trace(path, collectives=True)
    assert len(trace.signatures) == 1
    joined(trace, "auto")
