"""Takes the pictures of README and docs of the pages of committed runs, in headless Chromium. `make pictures`

Each is a first screen, or a stretch of a page from the top of one element to the bottom of another; in few colours, so
that all of them together stay small.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from tests.chromium import DRAWN, FLAGS, MISSING, READY, find_program

from docs.making.reports import REPORTS, write_reports

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
#: What all pictures together may take.
MOST_BYTES = 300_000
#: Of a first screen.
SCREEN = {"width": 1300, "height": 900}
MARGIN_PX = 12
COLOURS = 32
#: So many kernels are tried for one that lights up.
MOST_KERNELS = 1_500


@dataclass(frozen=True)
class Cut:
    """From the top of `first` to the bottom of `last` (selectors of Playwright) on the page of the run `page`, `width`
    pixels wide; without them the first screen. `lit` is what the timelines' readout of a kernel must hold that is
    pointed at, after `zoom` times zooming in."""

    name: str
    page: str
    first: str = ""
    last: str = ""
    width: int = 1000
    zoom: int = 0
    lit: str = ""


FLUX, VIT, QWEN = "h100-flux-compiled", "h100-vit", "h100-qwen2.5-vl-decode"

CUTS = (
    Cut("flux", FLUX),
    Cut("vit", VIT),
    Cut("qwen", QWEN),
    Cut("timelines", FLUX, "#timelines .controls", "#timelines .keys", zoom=9, lit="Triton (rms_norm"),
    Cut("modules", FLUX, "#module-tree h2", "#module-tree"),
    Cut("groups", FLUX, "#groups .explorer", "#groups .explorer tbody tr:nth-child(5)"),
)


def cut(browser: Any, asked: Cut, page_path: Path) -> bytes:
    """The picture as PNG."""
    screen = {"width": asked.width, "height": 1000} if asked.first else SCREEN
    page = browser.new_page(viewport=screen, color_scheme="light")
    page.goto(page_path.as_uri())
    page.wait_for_function(READY, timeout=60_000)
    if asked.lit:
        _light_up(page, asked)
    shot = page.screenshot(full_page=True, clip=_stretch(page, asked)) if asked.first else page.screenshot()
    page.close()
    return _in_few_colours(shot)


def _light_up(page: Any, asked: Cut) -> None:
    """Goes from kernel to kernel until one of the group is found."""
    canvas, readout = page.locator("#timelines canvas"), page.locator("#timelines .readout")
    for _ in range(asked.zoom):
        canvas.press("+")
    for _ in range(MOST_KERNELS):
        canvas.press("n")
        page.evaluate(DRAWN)
        if asked.lit in readout.inner_text():
            return
    raise LookupError(f"no kernel near the middle of {asked.page} has {asked.lit!r} in its readout")


def _stretch(page: Any, asked: Cut) -> dict[str, float]:
    """Where on the whole page the picture is, in pixels."""
    page.evaluate("scrollTo(0, 0)")
    first, last = (page.locator(each).first.bounding_box() for each in (asked.first, asked.last))
    top, bottom = first["y"] - MARGIN_PX, last["y"] + last["height"] + MARGIN_PX
    return {"x": 0, "y": top, "width": asked.width, "height": bottom - top}


def _in_few_colours(png: bytes) -> bytes:
    written = io.BytesIO()
    image = Image.open(io.BytesIO(png)).convert("RGB")
    # The method that keeps a colour which few pixels have, as the verdict's.
    few = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(written, "PNG", optimize=True)
    return written.getvalue()


def main() -> None:
    """Writes them all, and says what they take."""
    from playwright.sync_api import sync_playwright

    program = find_program()
    if program is None:
        sys.exit(MISSING)
    PICTURES.mkdir(exist_ok=True)
    write_reports()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for asked in CUTS:
            (PICTURES / f"{asked.name}.png").write_bytes(cut(browser, asked, REPORTS / f"{asked.page}.html"))
        browser.close()
    sizes = {path.name: path.stat().st_size for path in sorted(PICTURES.glob("*.png"))}
    sys.stdout.writelines(f"{size:>8,} {name}\n" for name, size in sizes.items())
    if sum(sizes.values()) > MOST_BYTES:
        sys.exit(f"{sum(sizes.values()):,} bytes in all, over {MOST_BYTES:,}")


if __name__ == "__main__":
    main()
