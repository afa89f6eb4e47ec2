"""A real browser without network, for the pages."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .chromium import DRAWN, FLAGS, MISSING, READY, find_program


@dataclass(frozen=True)
class Visit:
    """What happened when a page was opened: `complaints` are console errors, warnings and uncaught exceptions,
    `requests` every address asked for besides the page's own, `charts` the ids of those that were drawn and `spilled`
    those of charts that are wider than their place."""

    complaints: tuple[str, ...]
    requests: tuple[str, ...]
    charts: tuple[str, ...]
    spilled: tuple[str, ...]
    text: str
    title: str
    overflow_px: int


def find_chromium() -> str:
    """The browser's program; skips the test without one, fails it if TRACEKIT_REQUIRE_BROWSER=1."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        program, missing = None, "playwright is not installed"
    else:
        program = find_program()
        missing = MISSING
    if program is not None:
        return program
    if os.environ.get("TRACEKIT_REQUIRE_BROWSER") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


#: What is ended with the tests: the browser, if one was started.
STARTED = ExitStack()


@cache
def chromium() -> Any:
    """The browser, started once in this process; every test has a profile of its own in it, a `new_context`."""
    program = find_chromium()
    from playwright.sync_api import sync_playwright

    playwright = STARTED.enter_context(sync_playwright())
    browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
    STARTED.callback(browser.close)
    return browser


@dataclass(frozen=True)
class Opened:
    """An open page; `complaints` and `requests` grow while it is used."""

    page: Any
    complaints: list[str]
    requests: list[str]


@contextmanager
def opened(
    path: Path,
    *,
    at: str = "",
    width: int = 1280,
    dark: bool = False,
    scripts: bool = True,
    script: str = "",
    media: str = "screen",
) -> Iterator[Opened]:
    """A page opened from its file, at a place in it, when all is drawn; with a script of the test's own
    that runs before the page's."""
    own = path.resolve().as_uri()
    complaints: list[str] = []
    requests: list[str] = []

    def on_request(asked: Any) -> None:
        if asked.url.partition("#")[0] != own and not asked.url.startswith(("data:", "blob:")):
            requests.append(asked.url)

    context = chromium().new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", java_script_enabled=scripts
    )
    with context:
        page = context.new_page()
        page.emulate_media(media=media)
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", on_request)
        page.add_init_script(script)
        page.goto(own + at)
        if scripts:
            page.wait_for_function(READY, timeout=60_000)
        yield Opened(page, complaints, requests)


def settle(page: Any) -> None:
    """Waits until the page has drawn what it was asked for."""
    page.evaluate(DRAWN)


def open_page(path: Path, *, width: int = 1280, dark: bool = False, scripts: bool = True) -> Visit:
    """Opens a page from its file and waits until all is drawn."""
    with opened(path, width=width, dark=dark, scripts=scripts) as visited:
        page = visited.page
        drawn = page.query_selector_all("figure.chart")
        return Visit(
            complaints=tuple(visited.complaints),
            requests=tuple(visited.requests),
            charts=tuple(each.get_attribute("id") or "" for each in drawn),
            spilled=tuple(each.get_attribute("id") or "" for each in drawn if _spills(each)),
            text=page.inner_text("body"),
            title=page.title(),
            overflow_px=page.evaluate("document.documentElement.scrollWidth - innerWidth") if scripts else 0,
        )


def _spills(chart: Any) -> bool:
    edge = "(chart) => chart.querySelector('.rows:not(.inside)') ? chart.getBoundingClientRect().right + 1 : Infinity"
    ends = "(chart) => [...chart.querySelectorAll('.line b')].map((text) => text.getBoundingClientRect().right)"
    return any(end > chart.evaluate(edge) for end in chart.evaluate(ends))
