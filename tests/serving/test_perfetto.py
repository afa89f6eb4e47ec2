from __future__ import annotations

import http.client
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tracekit.errors import TracekitError
from tracekit.serving.perfetto import PAGE, PINNED, TraceServer, offered

CONTENT = bytes(range(256)) * 20_000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "eager.json.gz"
    path.write_bytes(CONTENT)
    (tmp_path / "secret.txt").write_text("not for others")
    return path


@pytest.fixture
def server(trace: Path) -> Iterator[TraceServer]:
    with offered(trace, port=0) as server:
        yield server


def ask(server: TraceServer, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def test_perfettos_page_gets_the_file_whole(server: TraceServer) -> None:
    status, headers, body = ask(server, "/eager.json.gz", Origin=PAGE)
    assert (status, body) == (200, CONTENT)
    assert headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    assert headers["Content-Length"] == str(len(CONTENT))
    assert "Content-Encoding" not in headers
    assert server.fetched.wait(5)


def test_it_listens_on_loopback_alone(server: TraceServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("path", ["/", "/secret.txt", "/../secret.txt", "/eager.json.gz/", "/%2e%2e/secret.txt", "//"])
def test_any_other_path_is_not_found(server: TraceServer, path: str) -> None:
    status, _, body = ask(server, path)
    assert status == 404
    assert b"not for others" not in body
    assert b"eager" not in body
    assert not server.fetched.is_set()


def test_another_sites_page_is_refused(server: TraceServer) -> None:
    status, headers, body = ask(server, "/eager.json.gz", Origin="https://elsewhere.example")
    assert status == 403
    assert "Access-Control-Allow-Origin" not in headers
    assert CONTENT[:100] not in body
    assert not server.fetched.is_set()


def test_another_name_for_this_machine_is_refused(server: TraceServer) -> None:
    assert ask(server, "/eager.json.gz", Host=f"elsewhere.example:{server.port}")[0] == 403


def test_the_browsers_question_about_a_private_network_is_answered(server: TraceServer) -> None:
    headers = {"Origin": PAGE, "Access_Control_Request_Private_Network": "true"}
    status, answer, body = ask(server, "/eager.json.gz", "OPTIONS", **headers)
    assert (status, body) == (204, b"")
    assert answer["Access-Control-Allow-Private-Network"] == "true"
    assert answer["Access-Control-Allow-Origin"] == PAGE
    assert not server.fetched.is_set()


def test_asking_for_the_size_alone_is_no_fetch(server: TraceServer) -> None:
    status, headers, body = ask(server, "/eager.json.gz", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(len(CONTENT)), b"")
    assert not server.fetched.is_set()


def test_a_file_that_is_replaced_while_it_is_sent_is_sent_as_it_was_opened(
    server: TraceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, new = Path.open, server.path.with_suffix(".new")
    new.write_bytes(b"another, much shorter")

    def replaced(path: Path, mode: str) -> Any:
        file = opened(path, mode)
        new.rename(path)
        return file

    monkeypatch.setattr(Path, "open", replaced)
    status, headers, body = ask(server, "/eager.json.gz")
    assert (status, headers["Content-Length"], body) == (200, str(len(CONTENT)), CONTENT)


def test_writing_is_not_possible(server: TraceServer) -> None:
    assert ask(server, "/eager.json.gz", "POST")[0] == 501


def test_a_page_closed_half_way_may_fetch_again(server: TraceServer) -> None:
    server.path.write_bytes(CONTENT * 8)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(f"GET /eager.json.gz HTTP/1.0\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        connection.recv(1000)
    time.sleep(0.2)
    assert not server.fetched.is_set()
    assert ask(server, "/eager.json.gz")[2] == CONTENT * 8
    assert server.fetched.wait(5)


def test_a_connection_that_asks_nothing_blocks_nobody(server: TraceServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10):
        assert ask(server, "/eager.json.gz")[0] == 200


def test_a_taken_port_is_told_in_one_line(trace: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(TracekitError, match=f"^port {port} is taken.*stop what uses it") as raised,
            offered(trace, port),
        ):
            raise AssertionError("the port was not free")
    assert "\n" not in str(raised.value)


def test_the_port_is_free_at_once_for_the_next_trace(trace: Path) -> None:
    with offered(trace, port=0) as first:
        port = first.port
        assert ask(first, "/eager.json.gz")[0] == 200
    with offered(trace, port) as second:
        assert ask(second, "/eager.json.gz")[0] == 200


@pytest.mark.parametrize(
    ("name", "pinned"),
    [
        ("eager: kernel groups, GPU 0 10001", True),
        ("compiled: GPU 1 stream 7 20003", True),
        ("a (b): idle, GPU 0 10002", True),
        ("compiled: GPU 0 stream 7 (2) 20004", False),
        ("eager: GPU 0 busy %", False),
        ("eager: thread 7 10005", False),
        ("stream 7 7", True),
    ],
)
def test_what_is_pinned(name: str, pinned: bool) -> None:
    assert any(re.search(pattern, name) for pattern in PINNED) == pinned


def test_the_link_leads_to_the_file_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a run & 100% #1.json"
    path.write_bytes(b"{}")
    with offered(path, port=0) as server:
        assert server.link.startswith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:")
        # The page takes its address apart as a query, which decodes it once.
        (address,) = parse_qs(server.link.partition("#!/?")[2])["url"]
        assert unquote(urlsplit(address).path) == "/a run & 100% #1.json"
        assert ask(server, urlsplit(address).path)[2] == b"{}"
