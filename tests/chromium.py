"""Where Chromium is, how it is started here and waited for: of the browser tests, `make report-check` and `make
pictures`."""

import shutil

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MISSING = f"no browser found ({', '.join(PROGRAMS)}); on Debian and Ubuntu: apt install chromium"
#: A page has drawn its timelines, and unpacked what its rows open to.
READY = '() => !document.querySelector("[data-timelines=drawing], .explorer .packed")'
#: Ends when the page has drawn all it was asked for before: it draws in the next frame, and again where that moved it.
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def find_program() -> str | None:
    """The browser's program, or None."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)
