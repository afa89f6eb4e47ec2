"""A trace file's bytes, unpacked; gzip is told by its first bytes, never by the file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from isal import igzip_lib, isal_zlib

from tracekit.errors import TracekitError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PIECE_BYTES = 1 << 20
#: zlib's window bits for gzip framing.
GZIP_FRAME = 31

OnBytes = Callable[[int, int], None]


def read_content(path: Path, on_bytes: OnBytes | None) -> tuple[bytes, bool]:
    """The file's JSON bytes, and whether the packed file ended too early or was damaged (what came before is given).

    `on_bytes(done, total)` is told how much of the file has been read. Raises TracekitError when there is nothing.
    """
    packed = _read_file(path, on_bytes)
    if not packed:
        raise TracekitError(f"{path} is empty; record it again")
    if packed.startswith(ZSTD_MAGIC):
        raise TracekitError(f"{path} is packed with zstd, which tracekit cannot read yet; unpack it with `zstd -d`")
    if not packed.startswith(GZIP_MAGIC):
        return packed, False
    return _unpack(packed, path)


def _read_file(path: Path, on_bytes: OnBytes | None) -> bytes:
    try:
        total = path.stat().st_size
        with path.open("rb") as file:
            pieces: list[bytes] = []
            done = 0
            while piece := file.read(PIECE_BYTES):
                pieces.append(piece)
                done += len(piece)
                if on_bytes:
                    on_bytes(done, total)
    except FileNotFoundError:
        raise TracekitError(f"{path} is not there; check the path (`ls traces` lists recorded runs)") from None
    except IsADirectoryError:
        raise TracekitError(f"{path} is a folder without a run.json; pass a trace file or a run folder") from None
    except OSError as error:
        raise TracekitError(f"{path} cannot be read: {error.strerror}") from None
    return b"".join(pieces)


def _unpack(packed: bytes, path: Path) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    rest = packed
    damaged = False
    # A gzip file may hold several members one after the other.
    while rest.startswith(GZIP_MAGIC) and not damaged:
        unpacker = isal_zlib.decompressobj(GZIP_FRAME)
        try:
            for start in range(0, len(rest), PIECE_BYTES):
                pieces.append(unpacker.decompress(rest[start : start + PIECE_BYTES]))
                if unpacker.eof:
                    rest = unpacker.unused_data + rest[start + PIECE_BYTES :]
                    break
            else:
                damaged = True
        except igzip_lib.IsalError:  # type: ignore[misc] # isal's stub does not call it an exception
            damaged = True
    content = b"".join(pieces)
    if not content:
        raise TracekitError(f"{path} is a damaged gzip file from which nothing can be read; copy or record it again")
    return content, damaged
