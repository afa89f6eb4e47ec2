import http.client
import os
import queue
import random
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tracekit.errors import TracekitError
from tracekit.serving import perfetto
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


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> queue.Queue[None]:
    """Has an entry more whenever the server is done with a connection, and has counted it or not."""
    ends: queue.Queue[None] = queue.Queue()
    end = TraceServer.shutdown_request

    def ended(server: TraceServer, request: socket.socket) -> None:
        end(server, request)
        ends.put(None)

    monkeypatch.setattr(TraceServer, "shutdown_request", ended)
    return ends


def ask(server: TraceServer, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
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
    assert server.fetched.wait(60)
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("path", ["/", "/secret.txt", "/../secret.txt", "/eager.json.gz/", "/%2e%2e/secret.txt", "//"])
def test_any_other_path_is_not_found(server: TraceServer, path: str) -> None:
    status, _, body = ask(server, path)
    assert (status, b"not for others" in body, b"eager" in body) == (404, False, False)
    assert not server.fetched.is_set()


NOT_THE_PAGE = (
    *("null", "", "http://ui.perfetto.dev", "https://elsewhere.example", PAGE.upper()),
    *(f"{PAGE}:444", f"{PAGE}.elsewhere.example", f"{PAGE}, {PAGE}"),
)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        *(("GET", {"Origin": origin}) for origin in NOT_THE_PAGE),
        ("GET", {"Host": "elsewhere.example:{port}"}),
        # For pictures and links of any page browsers send no origin.
        *(
            (method, {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "no-cors"})
            for method in ("GET", "HEAD", "OPTIONS")
            for site in ("cross-site", "same-site", "same-origin", "anything")
        ),
    ],
)
def test_whoever_is_not_perfettos_page_or_a_program_is_refused(
    server: TraceServer, method: str, headers: dict[str, str]
) -> None:
    filled = {name: value.replace("{port}", str(server.port)) for name, value in headers.items()}
    status, answer, body = ask(server, "/eager.json.gz", method, **filled)
    assert (status, "Access-Control-Allow-Origin" in answer, CONTENT[:100] in body) == (403, False, False)
    assert not server.fetched.is_set()


def test_two_origins_are_refused(server: TraceServer) -> None:
    lines = [f"Host: 127.0.0.1:{server.port}", f"Origin: {PAGE}", "Origin: https://elsewhere.example"]
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall("\r\n".join(["GET /eager.json.gz HTTP/1.0", *lines, "", ""]).encode())
        assert b" 403 " in connection.recv(100)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {}),
        ("GET", {"Sec_Fetch_Site": "none"}),
        ("GET", {"Origin": PAGE, "Range": "bytes=0-"}),
        ("HEAD", {}),
        ("HEAD", {"Origin": PAGE}),
    ],
    ids=["a program", "an address that was typed", "a part", "the size", "the size for the page"],
)
def test_what_else_is_answered_does_not_end_the_serving(
    server: TraceServer, answered: queue.Queue[None], method: str, headers: dict[str, str]
) -> None:
    status, answer, body = ask(server, "/eager.json.gz", method, **headers)
    assert (status, answer["Content-Length"]) == (200, str(len(CONTENT)))
    assert body == (b"" if method == "HEAD" else CONTENT)
    answered.get(timeout=60)
    assert not server.fetched.is_set()
    # Nothing else keeps it from being fetched.
    assert ask(server, "/eager.json.gz", Origin=PAGE)[2] == CONTENT
    assert server.fetched.wait(60)


@pytest.mark.parametrize("path", ["/eager.json.gz", "/secret.txt"])
def test_no_answer_may_be_kept_guessed_at_or_shown_in_another_page(server: TraceServer, path: str) -> None:
    _, headers, _ = ask(server, path)
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Server"] == "tracekit"


def test_the_browsers_question_about_a_private_network_is_answered(server: TraceServer) -> None:
    headers = {"Origin": PAGE, "Access_Control_Request_Private_Network": "true"}
    status, answer, body = ask(server, "/eager.json.gz", "OPTIONS", **headers)
    assert (status, body) == (204, b"")
    assert answer["Access-Control-Allow-Private-Network"] == "true"
    assert answer["Access-Control-Allow-Origin"] == PAGE
    assert not server.fetched.is_set()


#: What stands in the place of a trace.
KINDS: dict[str, Callable[[Path], object]] = {
    "another file": lambda path: path.write_bytes(b"another, much shorter"),
    "a link": lambda path: path.symlink_to("secret.txt"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_served_is_the_file_that_was_there_at_the_start(server: TraceServer, trace: Path, kind: str) -> None:
    trace.unlink()
    KINDS[kind](trace)
    assert ask(server, "/eager.json.gz", "HEAD")[1]["Content-Length"] == str(len(CONTENT))
    assert ask(server, "/eager.json.gz")[2] == CONTENT


@pytest.mark.parametrize("kind", ["a link to a device", "a pipe", "a folder", "nothing"])
def test_what_is_no_regular_file_is_not_served(tmp_path: Path, kind: str) -> None:
    KINDS[kind](tmp_path / "trace")
    with pytest.raises(TracekitError, match="cannot be"), offered(tmp_path / "trace", port=0):
        raise AssertionError("it was served")


def test_a_file_that_becomes_shorter_while_it_is_sent_was_not_fetched(
    server: TraceServer, trace: Path, answered: queue.Queue[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = os.pread

    def shortening(handle: int, length: int, offset: int) -> bytes:
        os.truncate(trace, perfetto.PIECE_BYTES)
        return read(handle, length, offset)

    monkeypatch.setattr(os, "pread", shortening)
    with pytest.raises(http.client.IncompleteRead):
        ask(server, "/eager.json.gz", Origin=PAGE)
    answered.get(timeout=60)
    assert not server.fetched.is_set()


def question(server: TraceServer) -> bytes:
    """As Perfetto's page asks, but for the empty line that ends it."""
    return f"GET /eager.json.gz HTTP/1.0\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: {PAGE}\r\n".encode()


def leave_after(server: TraceServer, taken: int) -> bytes:
    """Asks as Perfetto's page does, and closes after so many bytes of the answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(question(server) + b"\r\n")
        got = b""
        while len(got) < taken and (piece := connection.recv(taken - len(got))):
            got += piece
    return got


#: All of it lies in buffers at once; some of it does; most of it does not.
SIZES = (1, 100_000, 40_000_000)


@pytest.mark.parametrize("size", SIZES)
def test_a_client_that_leaves_early_has_not_fetched_it(trace: Path, answered: queue.Queue[None], size: int) -> None:
    os.truncate(trace, size)
    with offered(trace, port=0) as server:
        whole = len(leave_after(server, size + 1_000_000))
        answered.get(timeout=60)
        assert server.fetched.is_set(), "which is what is counted"
        server.fetched.clear()
        somewhere = random.Random(size).sample(range(whole), 5)
        for taken in (0, 1, 100, whole - size, whole // 2, whole - 1, *somewhere):
            assert len(leave_after(server, taken)) == taken
            answered.get(timeout=60)
            assert not server.fetched.is_set(), taken
        # It is offered on until someone takes it whole.
        assert len(leave_after(server, whole)) == whole
        assert server.fetched.wait(60)


@pytest.mark.parametrize("size", SIZES)
def test_a_client_that_has_left_before_it_is_answered_has_not_fetched_it(
    trace: Path, answered: queue.Queue[None], size: int
) -> None:
    os.truncate(trace, size)
    with offered(trace, port=0) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(question(server))
            # In place of the empty line, so that no answer can be faster.
            connection.shutdown(socket.SHUT_WR)
            answered.get(timeout=60)
        assert not server.fetched.is_set()


@pytest.mark.parametrize("reads", [True, False])
def test_a_client_that_never_closes_is_not_waited_for_for_ever(
    trace: Path, answered: queue.Queue[None], monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    monkeypatch.setattr(perfetto._Answer, "timeout", 0.3)
    with offered(trace, port=0) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(question(server) + b"\r\n")
            while reads and connection.recv(1_000_000):
                pass
            answered.get(timeout=60)
        assert not server.fetched.is_set()


def test_a_connection_that_asks_nothing_blocks_nobody(server: TraceServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60):
        assert ask(server, "/eager.json.gz")[0] == 200
    assert ask(server, "/eager.json.gz", "POST")[0] == 501


def test_a_taken_port_is_told_in_one_line_and_is_free_at_once_for_the_next_trace(trace: Path) -> None:
    with offered(trace, port=0) as first:
        port = first.port
        assert ask(first, "/eager.json.gz")[0] == 200
        with pytest.raises(TracekitError, match=f"^port {port} is .*sport = :{port}") as raised:
            offered(trace, port).__enter__()
    assert "\n" not in str(raised.value)
    with offered(trace, port) as second:
        assert ask(second, "/eager.json.gz")[0] == 200


@pytest.mark.parametrize(
    ("name", "pinned"),
    [
        ("/eager/kernel groups, GPU 0 10001", True),
        ("/compiled/GPU 1 stream 7 20003", True),
        ("/a (b)/idle, GPU 0 10002", True),
        ("/rank 12/collectives, stream 7 130002", True),
        ("/rank 12/idle 130003", True),
        ("/rank 12/GPU stream 7 130004", False),
        ("idle, GPU 0 10002", False),
        ("/compiled/GPU 0 stream 7 (2) 20004", False),
        ("eager: GPU 0 busy %", False),
        ("/eager/thread 7 10005", False),
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
