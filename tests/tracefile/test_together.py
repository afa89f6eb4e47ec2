from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from tests.traces import DATA

from tracekit.model.trace import Trace
from tracekit.tracefile import helpers, together
from tracekit.tracefile.read import read_trace
from tracekit.tracefile.together import Batches, Claims, Parts

from .test_cache import same

SOURCE = DATA / "flux_eager.json.zst"


@pytest.fixture(autouse=True)
def _every_file_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "LEAST_BYTES", 1)


@pytest.fixture(scope="module")
def text() -> bytes:
    return zstandard.decompress(SOURCE.read_bytes())


@pytest.fixture(scope="module")
def alone() -> Trace:
    return read_trace(SOURCE, shapes=True)


def decode_nothing(batches: Batches, *_: object) -> Parts:
    """Reads to the end, and leaves the batches to the others."""
    for _ in batches:
        pass
    return iter(())


def refuse(*_: object) -> Iterator[None]:
    raise AssertionError("one process reads this")


def test_two_processes_read_what_one_does(alone: Trace) -> None:
    assert same(read_trace(SOURCE, shapes=True, processes=2), alone)


def test_another_process_decodes_what_this_one_leaves(alone: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "decode_claimed", decode_nothing)
    monkeypatch.setattr("tracekit.tracefile.read.decode_events", refuse)
    assert same(read_trace(SOURCE, shapes=True, processes=3), alone)


def test_processes_that_were_started_early_take_part(alone: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "LEAST_BYTES_EARLY", 1)
    helpers.start_early(str(SOURCE), "shapes", 2)
    monkeypatch.setattr(together, "decode_claimed", decode_nothing)
    monkeypatch.setattr("tracekit.tracefile.read.decode_events", refuse)
    assert same(read_trace(SOURCE, shapes=True), alone)


def test_processes_that_nobody_needs_end(tmp_path: Path, alone: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "LEAST_BYTES_EARLY", 1)
    helpers.start_early(str(SOURCE), "shapes", 2)
    (early,) = helpers._early.values()
    monkeypatch.setattr("tracekit.tracefile.cache.load", lambda *_: alone)
    assert read_trace(SOURCE, shapes=True, cache_folder=tmp_path) is alone
    assert early.claimed.closed
    assert not helpers._early
    helpers.start_early(str(tmp_path / "none.json"), "shapes", 2)
    assert not helpers._early


def test_without_room_for_files_one_process_reads(alone: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    monkeypatch.setattr(helpers, "LEAST_BYTES_EARLY", 1)
    helpers.start_early(str(SOURCE), "shapes", 2)
    assert same(read_trace(SOURCE, shapes=True, processes=2), alone)


def test_a_process_that_dies_costs_time_alone(alone: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "decode_claimed", decode_nothing)
    monkeypatch.setattr(helpers, "MODULE", "tracekit.no_such_module")
    assert same(read_trace(SOURCE, shapes=True, processes=2), alone)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"dur": ', b'"dur": NaN, "dur": '),
        (b'"dur": ', b'"dur": oops'),
        (b'"ph": "X"', b'"ph": "B"'),
    ],
)
def test_damage_far_inside_is_told_as_one_process_does(
    tmp_path: Path, text: bytes, before: bytes, after: bytes
) -> None:
    path = tmp_path / "trace.json"
    at = text.index(before, len(text) // 2)
    path.write_bytes(text[:at] + after + text[at + len(before) :])
    assert same(read_trace(path, processes=2), read_trace(path))


def test_a_file_that_was_cut_off_is_said_to_be(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(text[: len(text) // 2])
    whole, shared = read_trace(path), read_trace(path, processes=2)
    assert shared.truncated
    assert same(shared, whole)


def test_every_batch_is_claimed_once(tmp_path: Path) -> None:
    with (tmp_path / "claims").open("w+b") as file:
        claims, others = Claims(file.fileno()), Claims(file.fileno())
        assert [claims.claim(), others.claim(), claims.claim()] == [0, 1, 2]
        others.stop()
        assert claims.claim() >= together.STOPPED
