"""One trace file, offered to ui.perfetto.dev from this machine and to nobody else."""

import errno
import fcntl
import json
import os
import select
import socket
import socketserver
import stat
import sys
import termios
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

from tracekit.errors import TracekitError

PAGE = "https://ui.perfetto.dev"
HOST = "127.0.0.1"
#: The only port the page's content policy lets it fetch from.
PORT = 9001
#: What the page keeps in sight, by the names of tracks, in this order: of a merged trace the kernel groups of both
#: sides, their streams, their gaps; of ranks the collectives of all, their gaps; of torch.profiler's own the streams.
#: Second lanes of a track hold little.
PINNED = (
    r"^/(?!.* \(\d+\)).*/kernel groups",
    r"^/(?!.* \(\d+\)).*/GPU \d+ stream",
    r"^/(?!.* \(\d+\)).*/collectives",
    r"^/(?!.* \(\d+\)).*/idle",
    r"^stream -?\d+",
)
#: A browser may hold a connection open without asking for anything, or without taking what it asked for.
SILENCE_SECONDS = 60.0
PIECE_BYTES = 1 << 20


class TraceServer(socketserver.ThreadingTCPServer):
    """Serves one file, and notes when Perfetto's page has fetched it whole. Threads, because browsers open connections
    that they do not use.

    The file is the one that lies at `path` now, whatever lies there later. Raises TracekitError where that cannot
    be read or is no regular file, OSError where the port cannot be had.
    """

    # A port waits a minute after its last connection; without this a second `open` would find it taken by the first.
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, port: int) -> None:
        try:
            # A pipe that nobody writes to would otherwise be waited for.
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise TracekitError(f"{path} cannot be read: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise TracekitError(f"{path} is not a regular file and cannot be served")
        self.handle = handle
        # Not when serving ends: a thread that still answers would read whatever has the number by then.
        weakref.finalize(self, os.close, self.handle)
        self.fetched = threading.Event()
        super().__init__((HOST, port), _Answer)
        self.port = int(self.server_address[1])
        # The one path that is answered.
        self.resource = "/" + quote(os.fsencode(path.name), safe="")
        self.address = f"http://{HOST}:{self.port}{self.resource}"

    @property
    def link(self) -> str:
        """What opens the trace in a browser on this machine, with the GPU's tracks pinned."""
        commands = [{"id": "dev.perfetto.PinTracksByRegex", "args": [pattern]} for pattern in PINNED]
        # The page decodes the address once more than the server does.
        address, wanted = quote(self.address, safe=":/"), quote(json.dumps(commands, separators=(",", ":")), safe="")
        return f"{PAGE}/#!/?url={address}&startupCommands={wanted}"


class _Answer(BaseHTTPRequestHandler):
    """One request: the file for Perfetto's page and for programs of this machine, a refusal for any other page."""

    server: TraceServer
    timeout = SILENCE_SECONDS

    def do_GET(self) -> None:
        if self._is_refused():
            return
        size = self._begin()
        is_for_page = "Origin" in self.headers and "Range" not in self.headers
        if self._send(size) and is_for_page and self._was_taken():
            self.server.fetched.set()

    def do_HEAD(self) -> None:
        if not self._is_refused():
            self._begin()

    def do_OPTIONS(self) -> None:
        """The question a browser asks before it lets a public page reach this machine."""
        if self._is_refused():
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self._allow_page()
        self.send_header("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
        self.send_header("Access-Control-Allow-Headers", "*")
        self.send_header("Access-Control-Allow-Private-Network", "true")
        self.end_headers()

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            # A page that was closed half way: the file is offered until someone takes it whole.
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Requests are no news to the user."""

    def version_string(self) -> str:
        """What the header `Server` says: no versions."""
        return "tracekit"

    def end_headers(self) -> None:
        """Ends the headers of every answer with those that all of them have."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        # No other site's page can have it as a picture or a script. Perfetto's fetch is allowed by CORS instead.
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()

    def _is_refused(self) -> bool:
        """Answers with a refusal when this is not Perfetto's page (or a local program) asking for the file."""
        hosts = (f"{HOST}:{self.server.port}", f"localhost:{self.server.port}")
        if "Origin" in self.headers:
            is_welcome = self.headers.get_all("Origin") == [PAGE]
        else:
            # For pictures, scripts and links browsers send no origin, but say how the page that asks is related to this
            # address. `none` is an address that the user typed; programs say nothing.
            is_welcome = self.headers.get("Sec-Fetch-Site", "none") == "none"
        # Another site's name may be made to point at this machine; its page still sends that name.
        if not is_welcome or self.headers.get("Host") not in hosts:
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path.partition("?")[0] != self.server.resource:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            return False
        return True

    def _begin(self) -> int:
        """Sends the headers of the file; returns its size."""
        size = os.fstat(self.server.handle).st_size
        self.send_response(HTTPStatus.OK)
        self._allow_page()
        # Not Content-Encoding: gzip: Perfetto unpacks it itself and counts the bytes it was told of.
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        self.send_header("Accept-Ranges", "none")
        self.end_headers()
        return size

    def _send(self, size: int) -> bool:
        """Whether so many bytes of the file were sent, to a client that had not closed by then."""
        sent = 0
        while sent < size:
            piece = os.pread(self.server.handle, min(PIECE_BYTES, size - sent), sent)
            readable, _, _ = select.select([self.connection], [], [], 0)
            is_closed = bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
            if not piece or is_closed:
                return False
            self.wfile.write(piece)
            sent += len(piece)
        return True

    def _was_taken(self) -> bool:
        """Whether the client took all that was sent, which may still lie in buffers: a client that closes before it has
        read everything resets the connection. Waits until it closes."""
        try:
            error: int
            self.connection.shutdown(socket.SHUT_WR)
            until = time.monotonic() + SILENCE_SECONDS
            while self.connection.recv(PIECE_BYTES):
                if time.monotonic() > until:
                    return False
            # What comes after the client's close is answered with a reset, which is told here alone.
            while (error := self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) == 0 and self._is_sending():
                if time.monotonic() > until:
                    return False
                time.sleep(0.001)
        except OSError:
            # The connection was reset, or is still open after that time.
            return False
        return error == 0

    def _is_sending(self) -> bool:
        """Whether the client's machine has not confirmed all that was sent (`man 7 tcp`)."""
        outstanding: bytes = fcntl.ioctl(self.connection, termios.TIOCOUTQ, bytes(4))
        return int.from_bytes(outstanding, sys.byteorder) > 0

    def _allow_page(self) -> None:
        self.send_header("Access-Control-Allow-Origin", PAGE)
        self.send_header("Vary", "Origin")


@contextmanager
def offered(path: Path, port: int = PORT) -> Iterator[TraceServer]:
    """The file at `path`, served on loopback until the block ends; `fetched` is set once Perfetto's page took it whole.

    Raises TracekitError when the port is taken, and for what is no regular file.
    """
    try:
        server = TraceServer(path, port)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise TracekitError(
            f"port {port} is in use, and Perfetto's page fetches from no other port: stop the process that uses it"
            f" (`ss -ltnp 'sport = :{port}'` names it), or open {path} in Perfetto by hand"
        ) from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
