"""Traces and digests that a web server gives, or does not."""

import gzip
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from tests.traces import make_kernel, write_trace

from tracekit.errors import TracekitError
from tracekit.tracefile import places, unpack
from tracekit.tracefile.places import content_of, part_of
from tracekit.tracefile.read import read_trace

pytest.importorskip("aiohttp")

LOCATIONS = {"/loop": "/loop", "/to-file": "file:///etc/passwd", "/to-store": "s3://bucket/trace.json"}


class Server(BaseHTTPRequestHandler):
    """Answers as each path says; requests for parts only where that says so."""

    protocol_version = "HTTP/1.1"
    content: ClassVar[bytes] = b""
    over: ClassVar[threading.Event] = threading.Event()

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        content, path = self.content, self.path
        if path[1:].isdecimal():
            self.answer(int(path[1:]))
        elif path in LOCATIONS:
            self.answer(302, Location=LOCATIONS[path])
        elif path == "/page":
            self.answer(200, b"<!DOCTYPE html><title>Log in</title>")
        elif path == "/short":
            self.answer(200, content, length=len(content) + 10)
            self.close_connection = True
        elif path == "/encoding":
            self.answer(200, content, Content_Encoding="gzip")
        elif path == "/packed":
            self.answer(200, gzip.compress(content), Content_Encoding="gzip")
        elif path == "/never":
            self.over.wait(60)
        elif path == "/stalls":
            self.answer(200, content[:100], length=len(content))
            self.over.wait(60)
        elif path == "/endless":
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            for _ in range(1000 if self.command == "GET" else 0):
                self.wfile.write(b'{"traceEvents": [' + b" " * 100_000)
        elif path == "/parts" and (asked := self.headers.get("Range")):
            first, last = (int(each) for each in asked.removeprefix("bytes=").split("-"))
            part = content[first : last + 1]
            self.answer(206, part, Content_Range=f"bytes {first}-{first + len(part) - 1}/{len(content)}")
        else:
            self.answer(200, content)

    def answer(self, status: int, content: bytes = b"", length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)
            self.wfile.flush()


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that has heard enough closes the connection."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    Server.content = write_trace(tmp_path_factory.mktemp("web"), [make_kernel(0, 1), make_kernel(2, 3)]).read_bytes()
    with Quiet(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        Server.over.set()
        server.shutdown()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        *((str(status), f"the server answered {status}") for status in (401, 403, 404, 429, 500)),
        ("loop", "redirects without end"),
        # Nothing of this machine is read for a server.
        ("to-file", "redirects to file:///etc/passwd, which is no web address"),
        ("to-store", "redirects to s3://bucket/trace.json, which is no web address"),
        ("page", "is a web page; log in"),
        ("short", "the answer is damaged or ended early .*content length"),
        ("encoding", "the answer is damaged or ended early .*content-encoding: gzip"),
    ],
)
def test_what_a_server_answers_instead_of_a_trace_is_said_in_one_line(web: str, path: str, said: str) -> None:
    with pytest.raises(TracekitError, match=said) as refused:
        read_trace(f"{web}/{path}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("path", ["never", "stalls"])
def test_a_server_that_is_silent_is_not_waited_for(web: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "WEB_SECONDS", 0.3)
    fresh_session(monkeypatch)
    began = time.monotonic()
    with pytest.raises(TracekitError, match=r"did not answer within 0.3 s"):
        read_trace(f"{web}/{path}")
    # The server itself would send in a minute.
    assert time.monotonic() - began < 30


def fresh_session(patch: pytest.MonkeyPatch) -> None:
    """fsspec keeps one for each set of settings."""
    session = places._session
    patch.setattr(places, "_session", lambda **settings: session(**settings))


def test_an_answer_without_end_is_read_up_to_a_bound(web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MOST_WEB_BYTES", 1_000_000)
    with pytest.raises(TracekitError, match="more than 1,000,000 bytes: save it"):
        read_trace(f"{web}/endless")
    monkeypatch.setattr(places, "MOST_CONTENT_BYTES", 1_000_000)
    with pytest.raises(TracekitError, match="larger than the limit of 1,000,000 bytes"):
        content_of(f"{web}/endless")


def test_a_server_that_nobody_runs_is_one_line() -> None:
    for url, said in {
        "http://127.0.0.1:9/x.json": "Connect",
        "http://nowhere.invalid/x.json": "nowhere.invalid",
    }.items():
        with pytest.raises(TracekitError, match=f"cannot be read: Client.*{said}.*check the connection") as refused:
            read_trace(url)
        assert "\n" not in str(refused.value)


def test_what_is_no_tls_is_one_line(web: str) -> None:
    with pytest.raises(TracekitError, match=r"cannot be read: ClientConnector.*ssl.*check the connection"):
        read_trace(web.replace("http:", "https:") + "/trace.json")


@pytest.mark.parametrize("path", ["trace.json", "packed", "parts"])
def test_a_trace_of_the_web_is_read_whichever_way_it_is_sent(web: str, path: str) -> None:
    assert read_trace(f"{web}/{path}").activities.height == 2


@pytest.mark.parametrize("path", ["whole", "parts"])
def test_a_part_of_a_file_is_the_same_from_servers_that_give_parts_and_from_others(
    web: str, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(places, "READ_BYTES", 7)
    here = tmp_path / "trace.json"
    here.write_bytes(Server.content)
    size = len(Server.content)
    for start, end in ((0, 10), (13, 40), (size - 9, size), (size - 5, size + 20)):
        assert part_of(f"{web}/{path}", start, end) == part_of(str(here), start, end) == Server.content[start:end]
    assert content_of(f"{web}/{path}") == Server.content
