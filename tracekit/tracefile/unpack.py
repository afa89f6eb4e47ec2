"""A trace's bytes in pieces, unpacked in a thread of their own: the decoder works on one while the next is made.

gzip and zstd are told by the first bytes, never by the file's name. At most `QUEUED` pieces wait, so a file of any
size, or one that unpacks to a thousand times its own, takes no more memory than they do.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

import zstandard
from isal import igzip_lib, isal_zlib
from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.files import GZIP_FRAME, GZIP_MAGIC, ZSTD_MAGIC
from tracekit.tracefile.places import READ_BYTES, WEB, refusal
from tracekit.tracefile.source import Source

#: Bytes of the pieces that are handed on.
PIECE_BYTES = 1 << 20
ZSTD_BYTES = 1 << 8
RESCUE_BYTES = 1 << 12
#: What unpacks to more than the one is no recording if that is more than the other times its size: times and addresses
#: of events differ, and recordings are packed 40 times at most.
LIKELY_BYTES, MOST_PACKED = 1 << 28, 200
#: Packed bytes of a pipe that are kept in case they must be unpacked again.
TRAIL_BYTES = 1 << 26
QUEUED = 3
#: A server may send without end.
MOST_WEB_BYTES = 1 << 34
LONGEST_WAIT_SECONDS = 2.0
SHORT_WAIT_SECONDS = 0.2

OnBytes = Callable[[int, int | None], None]
#: What the reader hands over: pieces, then what was raised while reading, None where nothing was.
Pieces = queue.Queue[bytes | BaseException | None]


class Unpacked(Struct):
    """The pieces, in order. `damaged` says, once they are over, that the packed file ended early or was spoilt; `bytes`
    is how many came out of it, `packed` how many of the file were read."""

    pieces: Iterator[bytes]
    damaged: bool = False
    bytes: int = 0
    packed: int = 0


@contextmanager
def unpacked(source: Source, on_bytes: OnBytes | None = None) -> Iterator[Unpacked]:
    """The source's content. `on_bytes(done, total)` is told how much of the file has been read.

    Raises TracekitError for an empty file, for one of which nothing can be unpacked, and for one that unpacks to far
    more than any recording.
    """
    waiting: Pieces = queue.Queue(QUEUED)
    stop = threading.Event()
    content = Unpacked(_handed_over(waiting))

    def read() -> None:
        # Whatever goes wrong in here is raised where the pieces are taken.
        error: BaseException | None = None
        try:
            for piece in _joined(_content_of(source, content, on_bytes)):
                if stop.is_set():
                    break
                content.bytes += len(piece)
                if content.bytes > max(LIKELY_BYTES, MOST_PACKED * content.packed):
                    raise TracekitError(
                        f"{source.name} unpacks to more than {MOST_PACKED} times its size, as no recording does"
                    )
                waiting.put(piece)
        except BaseException as problem:  # noqa: BLE001 (raised again on the other side)
            error = problem
        waiting.put(error)

    reader = threading.Thread(target=read, daemon=True, name="tracekit-unpack")
    reader.start()
    try:
        yield content
    finally:
        stop.set()
        # The reader may wait to hand over a piece that nobody wants any more. One that waits for standard input is left
        # behind: it may wait for ever.
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while reader.is_alive() and time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                waiting.get(timeout=0.02)


def _handed_over(waiting: Pieces) -> Iterator[bytes]:
    while True:
        try:
            # In short waits: under polars' signal handler Ctrl-C ends none that goes on, and input may never come.
            piece = waiting.get(timeout=SHORT_WAIT_SECONDS)
        except queue.Empty:
            continue
        if isinstance(piece, BaseException):
            raise piece
        if piece is None:
            return
        yield piece


def _joined(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Small parts put together to pieces, large ones cut."""
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            joined = b"".join(held)
            whole = size - size % PIECE_BYTES
            yield from (joined[start : start + PIECE_BYTES] for start in range(0, whole, PIECE_BYTES))
            held, size = [joined[whole:]], size - whole
    if size:
        yield b"".join(held)


def _content_of(source: Source, content: Unpacked, on_bytes: OnBytes | None) -> Iterator[bytes]:
    parts = _packed(source, content, on_bytes)
    first = next(parts, b"")
    while first and len(first) < len(ZSTD_MAGIC) and (more := next(parts, b"")):
        first += more
    if not first:
        raise TracekitError(f"{source.name} is empty; record it again")
    if source.name.startswith(WEB) and first.lstrip().startswith(b"<"):
        raise TracekitError(f"{source.name} is a web page; log in, or pass the URL of the file itself")
    if first.startswith(GZIP_MAGIC):
        yield from _unpack(chain((first,), parts), _Gzip(), source, content)
    elif first.startswith(ZSTD_MAGIC):
        yield from _unpack(chain((first,), parts), _Zstd(), source, content)
    else:
        yield from chain((first,), parts)


def _packed(source: Source, content: Unpacked, on_bytes: OnBytes | None) -> Iterator[bytes]:
    done = 0
    while True:
        try:
            part = source.stream.read(READ_BYTES)
        except Exception as problem:  # noqa: BLE001 (said in one line)
            raise refusal(source.name, problem) from None
        if not part:
            return
        done += len(part)
        content.packed = max(content.packed, done)
        if done > MOST_WEB_BYTES and source.name.startswith(WEB):
            raise TracekitError(f"{source.name} has more than {MOST_WEB_BYTES:,} bytes: save it, and pass the file")
        if on_bytes:
            on_bytes(done, source.bytes)
        yield part


class _Gzip:
    """gzip, of one member or several one after the other."""

    name = "gzip"
    errors: tuple[type[Exception], ...] = (igzip_lib.IsalError,)  # type: ignore[assignment] # isal's stub is wrong

    def __init__(self) -> None:
        self.member = isal_zlib.decompressobj(GZIP_FRAME)

    def parts(self, packed: bytes) -> Iterator[bytes]:
        while packed:
            if self.member.eof:
                if not packed.startswith(GZIP_MAGIC[: len(packed)]):
                    # What pads or follows the last member is none.
                    return
                self.member = isal_zlib.decompressobj(GZIP_FRAME)
            part = self.member.decompress(packed, PIECE_BYTES)
            yield part
            packed = self.member.unused_data if self.member.eof else self.member.unconsumed_tail
            while len(part) == PIECE_BYTES and not packed and not self.member.eof:
                part = self.member.decompress(b"", PIECE_BYTES)
                yield part


class _Zstd:
    """zstd, of one frame or several."""

    name = "zstd"
    errors: tuple[type[Exception], ...] = (zstandard.ZstdError,)

    def __init__(self) -> None:
        self.member = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()

    def parts(self, packed: bytes) -> Iterator[bytes]:
        # The library gives out all that a part holds at once, up to 32 KiB a byte; small parts keep that bounded.
        for start in range(0, len(packed), ZSTD_BYTES):
            rest = packed[start : start + ZSTD_BYTES]
            while rest:
                if self.member.eof:
                    self.member = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
                yield self.member.decompress(rest)
                rest = self.member.unused_data if self.member.eof else b""


class _CarefulGzip:
    """gzip by zlib, of one member or several: slower than the fast library, which with its error throws away all that
    it had unpacked in one go, and keeps no copy of its state. `done` is how many bytes came out, `over` says that there
    is nothing more: a fault, or what follows the last member."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(GZIP_FRAME)
        self.done = 0
        self.over = False

    def parts(self, packed: bytes) -> Iterator[bytes]:
        for start in range(0, len(packed), RESCUE_BYTES):
            for part in self._parts_of(packed[start : start + RESCUE_BYTES]):
                self.done += len(part)
                yield part
            if self.over:
                return

    def _parts_of(self, packed: bytes) -> Iterator[bytes]:
        while packed:
            if self._member.eof:
                if not packed.startswith(GZIP_MAGIC[: len(packed)]):
                    self.over = True
                    return
                self._member = zlib.decompressobj(GZIP_FRAME)
            before = self._member.copy()
            try:
                part = self._member.decompress(packed)
            except zlib.error:
                self.over = True
                # Byte by byte, all that comes before the one that is wrong.
                with contextlib.suppress(zlib.error):
                    for i in range(len(packed)):
                        yield before.decompress(packed[i : i + 1])
                return
            yield part
            packed = self._member.unused_data if self._member.eof else b""


class _Trail:
    """What came last from a pipe, which cannot be read again, and zlib's state before it. zlib begins only where more
    comes than is kept: sound files of less are unpacked once, longer ones a second time, far behind."""

    def __init__(self) -> None:
        self.behind = _CarefulGzip()
        self.kept: deque[bytes] = deque()
        self._size = 0

    def add(self, packed: bytes) -> None:
        self.kept.append(packed)
        self._size += len(packed)
        while self._size - len(self.kept[0]) >= TRAIL_BYTES:
            oldest = self.kept.popleft()
            self._size -= len(oldest)
            # Given already.
            for _ in self.behind.parts(oldest):
                pass


def _unpack(packed: Iterator[bytes], unpacker: _Gzip | _Zstd, source: Source, content: Unpacked) -> Iterator[bytes]:
    given = 0
    trail = _Trail() if isinstance(unpacker, _Gzip) and source.path is None else None
    try:
        for part in packed:
            if trail:
                trail.add(part)
            for piece in unpacker.parts(part):
                given += len(piece)
                yield piece
        content.damaged = not unpacker.member.eof
    except unpacker.errors:
        content.damaged = True
        if isinstance(unpacker, _Gzip):
            # zlib goes on where the fast library finds fault with codes that are not used.
            if trail is None:
                source.stream.seek(0)
            again = chain(trail.kept, packed) if trail else _packed(source, content, None)
            careful = trail.behind if trail else _CarefulGzip()
            for some in again:
                done = careful.done
                for part in careful.parts(some):
                    # What is beyond the bytes given already.
                    begin = max(given - done, 0)
                    done += len(part)
                    if begin < len(part):
                        given += len(part) - begin
                        yield part[begin:]
                if careful.over:
                    break
    if not given:
        raise TracekitError(
            f"{source.name} is a damaged {unpacker.name} file: nothing can be read; copy or record it again"
        )
