"""A real browser's rules for a public page that fetches from this machine, with Perfetto's page pretended."""

from __future__ import annotations

import contextlib
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tracekit.serving.perfetto import PAGE, TraceServer, offered

from ..browser import chromium, find_chromium
from ..perfetto import find_ui, shown

#: Whether the browser could use what another page asked for without being allowed to read it.
USED = """async (url) => {
    const asked = {
        picture: () => new Promise((done) => {
            const picture = new Image();
            picture.onload = () => done('loaded'); picture.onerror = () => done('refused');
            picture.src = url;
        }),
        script: () => new Promise((done) => {
            const script = document.createElement('script');
            script.onload = () => done('loaded'); script.onerror = () => done('refused');
            script.src = url;
            document.head.append(script);
        }),
        blind: () => fetch(url, {mode: 'no-cors'}).then((answer) => answer.type, () => 'refused'),
    };
    const found = {};
    for (const [kind, ask] of Object.entries(asked)) found[kind] = await ask();
    return found;
}"""
FETCH = """async (url) => {
    const answer = await fetch(url);
    return (await answer.arrayBuffer()).byteLength;
}"""


def fetch_from(page_address: str, server: TraceServer, script: str = FETCH) -> Any:
    """What a page at that address gets when it fetches the trace: the number of bytes, or the browser's refusal."""
    browser = chromium()
    from playwright.sync_api import Error

    with browser.new_context() as context:
        # What the user is asked since Chrome 142; browsers before it neither ask nor know the name.
        with contextlib.suppress(Error):
            context.grant_permissions(["local-network-access"], origin=page_address)
        page = context.new_page()
        page.route(
            f"{page_address}/**", lambda route: route.fulfill(body="<title>page</title>", content_type="text/html")
        )
        page.goto(f"{page_address}/")
        try:
            return page.evaluate(script, server.address)
        except Error as error:
            return error.message


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "eager light.json.gz"
    path.write_bytes(b"\x1f\x8b" + bytes(3_000_000))
    return path


@pytest.mark.browser
def test_perfettos_page_may_fetch_the_trace(trace: Path) -> None:
    find_chromium()
    with offered(trace, port=0) as server:
        assert fetch_from(PAGE, server) == 3_000_002
        assert server.fetched.wait(5)


@pytest.mark.browser
def test_another_page_may_not(trace: Path) -> None:
    find_chromium()
    with offered(trace, port=0) as server:
        assert "Failed to fetch" in fetch_from("https://elsewhere.example", server)
        assert not server.fetched.is_set()


@pytest.mark.browser
@pytest.mark.parametrize("page_address", ["https://elsewhere.example", "http://127.0.0.1:9999", PAGE])
def test_pictures_and_scripts_of_any_page_get_nothing_and_end_nothing(
    trace: Path, page_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_chromium()
    asked: list[tuple[str | None, int]] = []
    answer = BaseHTTPRequestHandler.send_response

    def noting(handler: BaseHTTPRequestHandler, code: int, message: str | None = None) -> None:
        asked.append((handler.headers.get("Sec-Fetch-Mode"), int(code)))
        answer(handler, code, message)

    monkeypatch.setattr(BaseHTTPRequestHandler, "send_response", noting)
    with offered(trace, port=0) as server:
        assert set(fetch_from(page_address, server, USED).values()) == {"refused"}
        assert asked.count(("no-cors", 403)) == 3, asked
        assert not server.fetched.is_set()
        # What a page that may reads is whole all the same.
        assert fetch_from(PAGE, server) == 3_000_002
        assert server.fetched.wait(5)


@pytest.mark.browser
def test_a_recording_as_torch_wrote_it_has_its_streams_pinned() -> None:
    find_ui()
    path = Path(__file__).parents[2] / "traces" / "h200-vit" / "eager-rich.json.gz"
    with offered(path, port=0) as server:
        link = server.link.replace(f":{server.port}", ":9001")
    with shown(path, link) as page:
        assert page.pinned()
        assert all(name.startswith("stream 7") for name in page.pinned())
