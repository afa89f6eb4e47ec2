"""How large is each page under reports/, and how long does it take to open? `make report-check`

Sizes are checked: 2 MB is what a page should have, over 4 MB ends with exit code 1. Times are printed: of the first
paint, until the page answers (it is whole, tables can be sorted, and a task that is asked for has run), of all charts
drawn, and the longest task, during which the page does not answer; each the median of several openings in headless
Chromium on the machine at hand, from its file, with nothing cached and no network. A page that takes over a second to
answer is noted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.chromium import FLAGS, MISSING, READY, find_program

MB = 1_000_000
SHOULD_BYTES = 2 * MB
MOST_BYTES = 4 * MB
#: A reader should not wait longer until the page answers; another machine may be slower, so it is only said.
SHOULD_ANSWER_MS = 1000
CONSOLE = Console(width=100, highlight=False)
#: Milliseconds since the navigation began: the first paint with content, and now.
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
#: The longest of the tasks so far, over 50 ms.
LONGEST = """new Promise(done => {
  new PerformanceObserver(list => done(Math.max(...list.getEntries().map(each => each.duration))))
    .observe({ type: "longtask", buffered: true });
  setTimeout(() => done(0), 100);
})"""
#: When a task that is asked for now is run: by then nothing holds the page up.
ANSWERED = "new Promise(done => setTimeout(() => done(performance.now()), 0))"


@dataclass(frozen=True)
class Opening:
    """One opening of a page, in milliseconds from its start; `requests` are addresses asked for besides its own."""

    painted_ms: float | None
    answered_ms: float
    drawn_ms: float
    longest_ms: float
    complaints: tuple[str, ...]
    requests: tuple[str, ...]


def open_once(browser: Any, page_path: Path) -> Opening:
    """Opens the page in a context of its own, so that nothing is kept from the last time."""
    own, complaints, requests = page_path.resolve().as_uri(), list[str](), list[str]()
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda asked: requests.append(asked.url) if asked.url != own and not asked.url.startswith("data:") else None,
    )
    page.goto(own, wait_until="domcontentloaded")
    answered_ms = page.evaluate(ANSWERED)
    page.wait_for_function(READY, timeout=60_000)
    drawn_ms, longest_ms = page.evaluate("performance.now()"), page.evaluate(LONGEST)
    painted_ms = page.evaluate(PAINTED)
    context.close()
    return Opening(painted_ms, answered_ms, drawn_ms, longest_ms, tuple(complaints), tuple(requests))


def check(pages: list[Path], openings: int) -> list[str]:
    """Prints a line for each page; returns what is wrong with them."""
    from playwright.sync_api import sync_playwright

    program = find_program()
    if program is None:
        sys.exit(MISSING)
    table = Table("page", box=None)
    for column in ("MB", "first paint", "answers", "drawn", "longest task"):
        table.add_column(column, justify="right")
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for page_path in pages:
            seen = [open_once(browser, page_path) for _ in range(openings)]
            table.add_row(page_path.name, f"{page_path.stat().st_size / MB:.2f}", *_times(seen))
            wrong += _wrong(page_path, seen)
        browser.close()
    CONSOLE.print(table)
    return wrong


def _times(seen: list[Opening]) -> tuple[str, str, str, str]:
    painted = [each.painted_ms for each in seen if each.painted_ms is not None]
    return (
        f"{statistics.median(painted):.0f} ms" if painted else "-",
        f"{statistics.median(each.answered_ms for each in seen):.0f} ms",
        f"{statistics.median(each.drawn_ms for each in seen):.0f} ms",
        f"{statistics.median(each.longest_ms for each in seen):.0f} ms",
    )


def _wrong(page_path: Path, seen: list[Opening]) -> list[str]:
    size = page_path.stat().st_size
    found = [f"{page_path.name}: {size / MB:.2f} MB, over {MOST_BYTES // MB}"] if size > MOST_BYTES else []
    if SHOULD_BYTES < size <= MOST_BYTES:
        CONSOLE.print(f"note: {page_path.name} has {size / MB:.2f} MB, over {SHOULD_BYTES // MB}")
    answered_ms = statistics.median(each.answered_ms for each in seen)
    if answered_ms > SHOULD_ANSWER_MS:
        CONSOLE.print(f"note: {page_path.name} answers after {answered_ms:.0f} ms, over {SHOULD_ANSWER_MS}")
    said = {text for each in seen for text in (*each.complaints, *each.requests)}
    return found + [f"{page_path.name}: {text}" for text in sorted(said)]


def main() -> None:
    """Checks the pages that are named, or all under reports/."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="pages (default: reports/*.html)")
    parser.add_argument("--openings", type=int, default=5, help="how often each page is opened")
    asked = parser.parse_args()
    pages = asked.pages or sorted(Path("reports").glob("*.html"))
    if not pages:
        sys.exit("there is no page under reports/")
    wrong = check(pages, asked.openings)
    for line in wrong:
        CONSOLE.print(f"wrong: {line}", markup=False)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
