"""Files as bytes, on this machine and wherever fsspec reaches: what lies in a folder, a file's ends, a file put there
whole."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

import xxhash

from tracekit.errors import TracekitError
from tracekit.files import write_named

URL_MARK = "://"
LOCAL_URL = "file://"
#: Listing a folder there means reading a page.
WEB = ("http://", "https://")
INSTALL = "pip install '.[remote]' in tracekit's checkout"
#: How long it may take to reach a web server, how long that may be silent, and how long all of an answer may take that
#: is no file.
WEB_SECONDS, WEB_PAGE_SECONDS = 30, 300
READ_BYTES = 1 << 18
#: Of what is read as a whole, digests, so much is read at most: a hundred times a large one.
MOST_CONTENT_BYTES = 256 << 20
#: Of what a server says so many characters are shown.
LONGEST = 100
#: Of a file's beginning and of its end so much is looked at, to know it again.
END_BYTES = 64_000


def is_url(place: str) -> bool:
    return URL_MARK in place


def plain(place: str) -> str:
    """Without what says that a path is one of this machine."""
    return place.removeprefix(LOCAL_URL)


def files_at(url: str) -> list[str]:
    """The URLs of the files in a folder or of a pattern, by name. Raises TracekitError where there is none."""
    fs, path = _system(url)
    with said_in_one_line(url):
        # What a long-lived worker knows of an earlier time.
        fs.invalidate_cache()
        found = fs.glob(path, detail=True) if is_pattern(url) else fs.find(path, maxdepth=1, detail=True)
        return sorted(str(fs.unstrip_protocol(name)) for name, about in found.items() if about["type"] == "file")


def is_pattern(place: str) -> bool:
    return any(sign in place for sign in "*?[")


def is_folder_url(url: str) -> bool:
    """Whether the URL is of a folder; one of the web is if it ends in a slash."""
    if url.startswith(WEB):
        return url.endswith("/")
    fs, path = _system(url)
    with said_in_one_line(url):
        return bool(fs.isdir(path))


def open_url(url: str) -> BinaryIO:
    """The file, open for reading; one of the web can be read once, from its beginning."""
    fs, path = _system(url)
    with said_in_one_line(url):
        if url.startswith(WEB):
            # In one request: not every server gives parts of a file.
            size = fs.info(path)["size"]
            file = _stream(fs, path)
            file.size = size
        else:
            file = fs.open(path, "rb")
        opened: BinaryIO = file
        return opened


def _stream(fs: Any, path: str, **headers: str) -> Any:
    """What a web server answers, as long as it keeps sending."""
    headers = {**fs.kwargs.get("headers", {}), **headers}
    # Where it is given a size it asks for none.
    return fs.open(path, "rb", block_size=0, size=-1, timeout=_waiting(None), headers=headers)


def _waiting(seconds: float | None) -> Any:
    from aiohttp import ClientTimeout

    return ClientTimeout(total=seconds, connect=WEB_SECONDS, sock_read=WEB_SECONDS)


async def _session(**settings: Any) -> Any:
    """aiohttp's, which by itself waits for five minutes for the first byte."""
    from aiohttp import ClientSession

    return ClientSession(**{"timeout": _waiting(WEB_PAGE_SECONDS), **settings})


def length_of(place: str) -> int | None:
    """Of the file, in bytes; None where nobody knows."""
    with said_in_one_line(place):
        if not is_url(place):
            path = Path(place)
            return path.stat().st_size if path.is_file() or not path.exists() else None
        fs, path_there = _system(place)
        size = fs.size(path_there)
        return None if size is None else int(size)


def part_of(place: str, start: int, end: int) -> bytes:
    """The bytes from `start` to before `end`."""
    with said_in_one_line(place):
        if place.startswith(WEB):
            with _stream(*_system(place), Range=f"bytes={start}-{end - 1}") as answer:
                # A server may give the whole file instead.
                left = start if answer.r.status != HTTPStatus.PARTIAL_CONTENT else 0
                found = bytearray()
                while len(found) < end - start and (piece := answer.read(READ_BYTES)):
                    found += piece[left:]
                    left = max(left - len(piece), 0)
                return bytes(found[: end - start])
        if is_url(place):
            fs, path = _system(place)
            return bytes(fs.cat_file(path, start=start, end=end))
        with Path(place).open("rb") as file:
            file.seek(start)
            return file.read(end - start)


def content_of(place: str) -> bytes:
    """The whole file. Raises TracekitError for one that is too large to be held."""
    content = part_of(place, 0, MOST_CONTENT_BYTES + 1)
    if len(content) > MOST_CONTENT_BYTES:
        raise TracekitError(f"{place} is larger than the limit of {MOST_CONTENT_BYTES:,} bytes")
    return content


def sum_of_ends(place: str, length: int) -> str:
    """Of a file's beginning and end, by which it is known again without being read whole."""
    ends = part_of(place, 0, min(END_BYTES, length))
    if length > END_BYTES:
        ends += part_of(place, max(length - END_BYTES, END_BYTES), length)
    return xxhash.xxh3_128_hexdigest(ends)


def put(place: str, content: bytes) -> None:
    """Writes the file whole or not at all: under another name and renamed, or as one object of a store. Raises
    TracekitError where it cannot be written."""
    if not is_url(place):
        write_named(Path(place), content)
        return
    fs, path = _system(place, "written")
    with said_in_one_line(place, "written"):
        fs.pipe_file(path, content)


def _system(url: str, done: str = "read") -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise TracekitError(f"{url} is a URL, which needs fsspec: {INSTALL}") from None
    with said_in_one_line(url, done):
        fs, path = url_to_fs(url, **({"get_client": _session} if url.startswith(WEB) else {}))
        logger = logging.getLogger(type(fs).__module__.partition(".")[0])
        # gcsfs logs a traceback for each request that fails: what comes of it is one line. Who asked for more gets it.
        if logger.getEffectiveLevel() >= logging.WARNING:
            logger.setLevel(logging.CRITICAL)
        return fs, str(path)


@contextmanager
def said_in_one_line(place: str, done: str = "read") -> Iterator[None]:
    """Whatever goes wrong in the block, as a TracekitError."""
    try:
        yield
    except Exception as error:
        # Of a file of this machine anything else is a bug.
        if isinstance(error, TracekitError) or not (is_url(place) or isinstance(error, OSError)):
            raise
        raise refusal(place, error, done) from error


def refusal(place: str, error: Exception, done: str = "read") -> TracekitError:
    """What to say where a file cannot be read, or written. Each file system has errors of its own."""
    if place.startswith(WEB):
        # fsspec says that there is no file, whatever came of the request.
        while isinstance(error, FileNotFoundError) and isinstance(error.__cause__, Exception):
            error = error.__cause__
    cannot, kind = f"{place} cannot be {done}", type(error).__name__
    if place.startswith(WEB) and (answer := _web_words(error, kind)):
        return TracekitError(f"{cannot}: {answer}")
    if isinstance(error, ImportError):
        return TracekitError(f"{cannot}: a package is missing ({error}): {INSTALL}")
    if isinstance(error, FileNotFoundError):
        if is_url(place) and done == "written":
            return TracekitError(f"{cannot}: its bucket or folder does not exist; make that, or pass another URL")
        if is_url(place):
            return TracekitError(f"{place} does not exist or needs permission; check the URL")
        return TracekitError(f"{place} does not exist; check the path (`ls traces` lists recorded runs)")
    if isinstance(error, OSError) and not is_url(place):
        return TracekitError(f"{cannot}: {error.strerror or error}")
    # Of a store that may not be read huggingface_hub's answer has a response, gcsfs' a code, or for 403 its name alone.
    statuses = {getattr(getattr(error, "response", None), "status_code", None), getattr(error, "code", None)}
    forbidden = isinstance(error, PermissionError) or not statuses.isdisjoint({401, 403})
    if forbidden or "Credentials" in kind or str(error).startswith("Forbidden: "):
        return TracekitError(f"{cannot}: no permission ({error}); check the credentials")
    mend = "check the URL" if isinstance(error, ValueError) else "check the connection and try again"
    return TracekitError(f"{cannot}: {kind}: {error}; {mend}")


def _web_words(error: Exception, kind: str) -> str | None:
    """What a web server answered instead of the file, by aiohttp's error, and what to do."""
    if isinstance(error, TimeoutError):
        return f"the server did not answer within {WEB_SECONDS} s; check the connection and try again"
    if kind == "TooManyRedirects":
        return "the server redirects without end; check the URL"
    if "Redirect" in kind:
        return f"the server redirects to {error}, which is no web address; check the URL"
    status, message = getattr(error, "status", None), str(getattr(error.__cause__ or error, "message", ""))
    # Of an answer that is no HTTP aiohttp says 400 itself.
    if kind == "ClientPayloadError" or (status and error.__cause__ is not None):
        return f"the answer is damaged or ended early ({message.rstrip('.')[:LONGEST]}); try again, or check the URL"
    if not isinstance(status, int):
        return None
    name = f"{status} {message[:LONGEST]}".strip()
    mend = {401: "check the permission", 403: "check the permission", 404: "check the URL", 410: "check the URL"}
    return f"the server answered {name}; {mend.get(status, 'try again later, or check the URL')}"
