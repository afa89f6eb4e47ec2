"""One trace file, offered to ui.perfetto.dev from this machine and to nobody else."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socketserver
import threading
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
#: No second lane of a track, which holds little.
FIRST_LANE = r"^(?!.* \(\d+\))"
#: What the page keeps in sight, by the names of tracks, in this order: of a merged trace the kernel groups of both
#: sides, their streams, their gaps; of torch.profiler's own the streams.
PINNED = (
    f"{FIRST_LANE}.*: kernel groups",
    rf"{FIRST_LANE}.*: GPU \d+ stream",
    f"{FIRST_LANE}.*: idle",
    r"^stream -?\d+",
)
#: A browser may hold a connection open without asking for anything.
SILENCE_SECONDS = 60.0
PIECE_BYTES = 1 << 20


class TraceServer(socketserver.ThreadingTCPServer):
    """Serves one file until it was fetched whole. Threads, because browsers open connections they do not use."""

    # A port waits a minute after its last connection; without this a second `open` would find it taken by the first.
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, port: int) -> None:
        self.path = path
        self.fetched = threading.Event()
        super().__init__((HOST, port), _Answer)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """Where the file is fetched from."""
        return f"http://{HOST}:{self.port}{self.resource}"

    @property
    def resource(self) -> str:
        """The one path that is answered."""
        return "/" + quote(self.path.name, safe="")

    @property
    def link(self) -> str:
        """What opens the trace in a browser on this machine, with the GPU's tracks pinned."""
        commands = [{"id": "dev.perfetto.PinTracksByRegex", "args": [pattern]} for pattern in PINNED]
        # The page decodes the address once more than the server does.
        address, wanted = quote(self.address, safe=":/"), quote(json.dumps(commands, separators=(",", ":")), safe="")
        return f"{PAGE}/#!/?url={address}&startupCommands={wanted}"


class _Answer(BaseHTTPRequestHandler):
    """One request: the file for Perfetto's page, a refusal for anything else."""

    server: TraceServer
    timeout = SILENCE_SECONDS

    def do_GET(self) -> None:
        if self._is_refused():
            return
        with self.server.path.open("rb") as file:
            # Of the file that is open: by now another may lie at its path.
            self._begin(os.fstat(file.fileno()).st_size)
            shutil.copyfileobj(file, self.wfile, PIECE_BYTES)
        self.server.fetched.set()

    def do_HEAD(self) -> None:
        if not self._is_refused():
            self._begin(self.server.path.stat().st_size)

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

    def _is_refused(self) -> bool:
        """Answers with a refusal when this is not Perfetto's page (or a local program) asking for the file."""
        hosts = (f"{HOST}:{self.server.port}", f"localhost:{self.server.port}")
        # Another site's name may be made to point at this machine; its page still sends that name.
        if self.headers.get("Host") not in hosts or self.headers.get("Origin", PAGE) != PAGE:
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path.partition("?")[0] != self.server.resource:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            return False
        return True

    def _begin(self, size: int) -> None:
        self.send_response(HTTPStatus.OK)
        self._allow_page()
        # Not Content-Encoding: gzip: Perfetto unpacks it itself and counts the bytes it was told of.
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()

    def _allow_page(self) -> None:
        self.send_header("Access-Control-Allow-Origin", PAGE)
        self.send_header("Vary", "Origin")


@contextmanager
def offered(path: Path, port: int = PORT) -> Iterator[TraceServer]:
    """The file at `path`, served on loopback until the block ends; `fetched` is set once it was taken whole.

    Raises TracekitError when the port is taken.
    """
    try:
        server = TraceServer(path, port)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise TracekitError(
            f"port {port} is taken, and Perfetto's page fetches from no other: stop what uses it"
            f" (`ss -ltnp 'sport = :{port}'` names it), perhaps another `tracekit open`"
        ) from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
