"""Files of this machine: read with a bound, written whole or not at all.

A folder that came from elsewhere may hold links, pipes and devices under any name, so whatever is read from one is
first seen to be a regular file of a size that can be held, and whatever is written beside it goes through no link. What
programs print is bounded, too.
"""

import contextlib
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO

from tracekit.errors import TracekitError

#: zlib's window bits for gzip framing.
GZIP_FRAME = 31
#: How a file of either begins.
GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: How large a log may become before it is cut, how much of each of its ends is kept then, and how often that is looked
#: at.
MOST_LOG_BYTES, LOG_END_BYTES = 4 << 20, 1 << 20
LOG_SECONDS = 1.0


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file of at most `most_bytes`. Raises TracekitError for a larger one and for a folder, a
    pipe or a device, which is never waited for; OSError where the file cannot be opened."""
    # A pipe that nobody writes to would otherwise be waited for.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise TracekitError(f"{path} is not a regular file")
    with os.fdopen(handle, "rb") as file:
        if found.st_size > most_bytes or len(content := file.read(most_bytes + 1)) > most_bytes:
            raise TracekitError(f"{path} is larger than the limit of {most_bytes:,} bytes")
        return content


def unpack_gzip(path: Path, most_packed: int, most_bytes: int) -> bytes:
    """What a regular gzip file of one member unpacks to. Raises TracekitError for what `read_bounded` refuses, for more
    than `most_bytes`, and for a damaged file; OSError where it cannot be opened."""
    packed = read_bounded(path, most_packed)
    member = zlib.decompressobj(GZIP_FRAME)
    try:
        content = member.decompress(packed, most_bytes + 1)
    except zlib.error as error:
        raise TracekitError(f"{path} is not a valid gzip file ({error}); copy or record it again") from None
    if len(content) > most_bytes:
        raise TracekitError(f"{path} unpacks to more than the limit of {most_bytes:,} bytes")
    if not member.eof:
        raise TracekitError(f"{path} is a truncated gzip file; copy or record it again")
    return content


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` once the block has ended: readers never see half of it, and
    after an error what was there is there still. For names that tracekit chooses: a link there is replaced, and never
    followed.

    Two processes never write one draft. The mode is that of the regular file that is replaced, else what the umask
    leaves. Raises OSError, which names the file, where nothing can be written.
    """
    # A name has at most 255 bytes, and that of the file may have all of them. Not by tempfile, whose files are private
    # for good: the umask cannot be asked for without setting it.
    draft = path.with_name(f".{os.fsdecode(os.fsencode(path.name)[:200])}.{os.urandom(8).hex()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode):
                    os.fchmod(handle, stat.S_IMODE(mode))
            yield file
        os.replace(draft, path)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            # On a full disk it is the write that fails, and that knows no name.
            error.filename = str(path)
        raise


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file to write at a place that a user named: `replaced`, but what is there and is no regular file (a device, a
    pipe) is written into, and a link is followed, as a shell does. Raises OSError where nothing can be written."""
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
    else:
        with replaced(path.resolve() if path.is_symlink() else path) as file:
            yield file


def write_replaced(path: Path, content: bytes) -> None:
    """`replaced` with this content; the folders that it lies in are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as file:
        file.write(content)


def write_named(path: Path, content: bytes) -> None:
    """`written` with this content; the folders that it lies in are made. Raises TracekitError where the place cannot be
    written to."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written(path) as file:
            file.write(content)
    except OSError as error:
        raise TracekitError(f"cannot write {path}: {error.strerror}; pass another path") from error


def why_unwritable(path: Path) -> str | None:
    """Why no file can be made there, as far as its folder tells; None where one can."""
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir():
        return f"{nearest} is a file, not a folder"
    return None if os.access(nearest, os.W_OK) else f"{nearest} is not writable"


class LogFile:
    """Whoever prints into it appends (O_APPEND) and may go on while it is cut."""

    def __init__(self, path: Path) -> None:
        self._path, self._left_out = path, 0

    def cut(self) -> None:
        """Leaves out the middle of a log that is too large, and says so there."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size <= MOST_LOG_BYTES:
            return
        with self._path.open("r+b") as file:
            file.seek(-LOG_END_BYTES, os.SEEK_END)
            end = file.read(LOG_END_BYTES)
            # What is printed between the two is lost, too.
            file.truncate(LOG_END_BYTES)
        self._left_out += size - 2 * LOG_END_BYTES
        said = f"\n... tracekit left out about {self._left_out:,} bytes of output here ...\n"
        with self._path.open("ab") as file:
            file.write(said.encode() + end)


@contextmanager
def log_bounded(path: Path) -> Iterator[None]:
    """Keeps the log bounded as long as the block lasts: a thread looks at its size."""
    log, over = LogFile(path), Event()

    def look() -> None:
        while not over.wait(LOG_SECONDS):
            log.cut()

    watch = Thread(target=look, daemon=True, name="tracekit-log")
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()
        log.cut()
