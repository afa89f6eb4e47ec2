import gzip
import io
import random
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from isal.igzip_lib import IsalError
from tests.fuzzing import fuzzed
from tests.traces import DATA

from tracekit.errors import TracekitError
from tracekit.tracefile import unpack
from tracekit.tracefile.source import Source
from tracekit.tracefile.unpack import PIECE_BYTES, unpacked

INCOMPRESSIBLE = b"{" + random.Random(0).randbytes(1 << 20)


class Pipe(io.BytesIO):
    """Gives some of what it is asked for."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 5000))


def content_of(packed: bytes, path: Path | None = None) -> tuple[bytes, bool]:
    """What comes out of a pipe, or of what can be read again, and whether it is damaged."""
    with unpacked(Source("it", io.BytesIO(packed) if path else Pipe(packed), None, path)) as content:
        return b"".join(content.pieces), content.damaged


PACKERS = {
    "plain": lambda parts: b"".join(parts),
    "gzip": lambda parts: b"".join(map(gzip.compress, parts)),
    "zstd": lambda parts: b"".join(map(zstandard.compress, parts)),
}


@fuzzed(30)
@given(st.sampled_from(list(PACKERS)), st.lists(st.binary(min_size=1, max_size=2000), min_size=1, max_size=4))
def test_what_was_packed_comes_out_also_of_several_members(how: str, parts: list[bytes]) -> None:
    packed = PACKERS[how]([b"{", *parts])
    assert content_of(packed) == (b"".join([b"{", *parts]), False)


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_large_content_comes_in_pieces_of_a_bounded_size(how: str) -> None:
    text = b"{" + b"0123456789" * (PIECE_BYTES // 4)
    packed = PACKERS[how]([text])
    with unpacked(Source("it", io.BytesIO(packed), None, None)) as content:
        pieces = list(content.pieces)
    assert b"".join(pieces) == text
    assert max(map(len, pieces)) <= PIECE_BYTES
    assert content.bytes == len(text)


@pytest.mark.parametrize("how", ["gzip", "zstd"])
@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_file_cut_off_gives_what_came_before_and_is_damaged(how: str, cut: float) -> None:
    packed = PACKERS[how]([INCOMPRESSIBLE])
    found, damaged = content_of(packed[: int(len(packed) * cut)])
    assert damaged
    assert INCOMPRESSIBLE.startswith(found)
    assert len(found) > 0.2 * len(INCOMPRESSIBLE)


TEXT = gzip.decompress((DATA / "vit_reduce-overhead.json.gz").read_bytes())


def rescued(spoilt: bytes, path: Path | None) -> tuple[bytes, bool] | str:
    try:
        return content_of(spoilt, path)
    except TracekitError as error:
        return str(error)


@fuzzed(20)
@given(st.data(), st.sampled_from([1, 3]))
def test_of_spoilt_gzip_a_pipe_gives_what_a_file_gives(data: st.DataObject, members: int) -> None:
    size = len(TEXT) // members + 1
    packed = bytearray(b"".join(gzip.compress(TEXT[i : i + size], mtime=0) for i in range(0, len(TEXT), size)))
    packed[data.draw(st.integers(10, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.MonkeyPatch.context() as patch:
        # Far less than the file has.
        patch.setattr(unpack, "TRAIL_BYTES", data.draw(st.sampled_from([1 << 14, 1 << 26])))
        assert rescued(bytes(packed), None) == rescued(bytes(packed), Path("spoilt.gz"))


@pytest.mark.parametrize("where", [0.5, 0.99])
def test_a_spoilt_pipe_gives_what_came_before_the_fault(where: float) -> None:
    packed = bytearray(gzip.compress(INCOMPRESSIBLE, mtime=0))
    # Stored, so that a fault shows in the checksum alone; and the end, which holds that.
    packed[-6] ^= 0xFF
    assert content_of(bytes(packed)) == (INCOMPRESSIBLE, True)
    members = gzip.compress(INCOMPRESSIBLE, mtime=0) + gzip.compress(TEXT, mtime=0)[: int(where * 1000)] + b"\xff" * 999
    found, damaged = content_of(members)
    assert found.startswith(INCOMPRESSIBLE) and damaged


def test_what_is_kept_of_a_pipe_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "TRAIL_BYTES", 1 << 20)
    trail = unpack._Trail()
    packed = gzip.compress(random.Random(1).randbytes(8 << 20), 1, mtime=0)
    tracemalloc.start()
    for start in range(0, len(packed), unpack.READ_BYTES):
        trail.add(bytes(memoryview(packed)[start : start + unpack.READ_BYTES]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert trail.behind.done > 6 << 20
    assert sum(map(len, trail.kept)) <= (1 << 20) + unpack.READ_BYTES
    assert peak < 3 << 20


def test_padding_behind_the_last_member_is_no_damage() -> None:
    assert content_of(gzip.compress(b"{}", mtime=0) + b"\0" * 512) == (b"{}", False)


def test_a_file_that_unpacks_to_a_thousand_times_its_size_takes_no_more_memory() -> None:
    bomb = gzip.compress(b"{" + b" " * (64 << 20), compresslevel=1)
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    size = 0
    with unpacked(Source("it", io.BytesIO(bomb), None, None)) as content:
        for piece in content.pieces:
            size += len(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == (64 << 20) + 1
    assert peak < 32 * PIECE_BYTES


def test_a_file_that_unpacks_to_far_more_than_any_recording_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "LIKELY_BYTES", 1 << 22)
    assert len(content_of(gzip.compress(b" " * (1 << 22)))[0]) == 1 << 22
    for pack in (gzip.compress, zstandard.compress):
        with pytest.raises(TracekitError, match="than 200 times its size"):
            content_of(pack(b" " * (8 << 20)))


def test_reading_that_is_given_up_leaves_no_thread() -> None:
    before = threading.active_count()
    with unpacked(Source("it", io.BytesIO(b"{" + b" " * (20 * PIECE_BYTES)), None, None)) as content:
        next(content.pieces)
    assert threading.active_count() == before


def test_a_disk_that_fails_while_reading_is_one_line() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() >= unpack.READ_BYTES:
                raise OSError(5, "Input/output error")
            return super().read(size)

    with (
        pytest.raises(TracekitError, match="it cannot be read: Input/output error"),
        unpacked(Source("it", Failing(b"{" + b" " * unpack.READ_BYTES * 2), None, None)) as content,
    ):
        list(content.pieces)


def test_an_input_that_never_ends_does_not_hold_up_who_has_seen_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "LONGEST_WAIT_SECONDS", 0.1)
    reached, wait, before = threading.Event(), threading.Event(), {*threading.enumerate()}

    class Waiting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            found = super().read(size)
            if not found:
                reached.set()
                wait.wait(60)
            return found

    with unpacked(Source("it", Waiting(b"{" + b" " * 2 * PIECE_BYTES), None, None)) as content:
        next(content.pieces)
        # Before that it would see that nobody wants more.
        assert reached.wait(60)
    assert {*threading.enumerate()} - before, "the reader is still there, and nobody waited for it"
    wait.set()


def test_a_file_that_is_unpacked_again_is_held_against_all_of_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Iterator[bytes]:
        yield b"{"
        raise IsalError("codes that are not used")

    monkeypatch.setattr(unpack, "LIKELY_BYTES", 1)
    monkeypatch.setattr(unpack, "MOST_PACKED", 2)
    monkeypatch.setattr(unpack._Gzip, "parts", fail)
    assert content_of(gzip.compress(INCOMPRESSIBLE), Path("it")) == (INCOMPRESSIBLE, True)
