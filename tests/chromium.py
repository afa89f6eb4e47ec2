"""Where Chromium is, and how it is started here: of the browser tests, `make report-check` and `make pictures`."""

import shutil

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MISSING = f"no browser found ({', '.join(PROGRAMS)}); on Debian and Ubuntu: apt install chromium"
#: A page has drawn its charts, or found to have none.
CHARTS = "html[data-charts]:not([data-charts=drawing])"


def find_program() -> str | None:
    """The browser's program, or None."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)
