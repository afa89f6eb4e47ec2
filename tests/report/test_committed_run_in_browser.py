"""Pages of committed runs as they are looked at: nothing cut, nothing over something else, on paper at full size."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.cli.runs import invoke
from tests.traces import FLUX, GRAPHED, QWEN, ROOT, VIT

from ..browser import opened, settle

pytestmark = pytest.mark.browser

PAGES = {"flux": FLUX, "qwen": QWEN, "vit": VIT, "graphed": GRAPHED}

#: Tables that have to be scrolled sideways.
SCROLLING = "[...document.querySelectorAll('.scroll.wider')].map((each) => each.dataset.label)"

#: Figures beside the bars of a chart that stand on the labels of its axis.
OVER_LABELS = """() => {
  const found = (selector) => [...document.querySelectorAll(`#waterfall ${selector}`)];
  const boxes = (selector) => found(selector).map((each) => each.getBoundingClientRect());
  const labels = boxes(".label"), figures = boxes(".line b");
  const level = (one, other) => one.top < other.bottom && other.top < one.bottom;
  const meet = (one, other) => level(one, other) && one.left < other.right && other.left < one.right;
  return [labels.length, figures.length, figures.filter((each) => labels.some((label) => meet(each, label))).length];
}"""

#: Lines within one row of stacked figures: how many different heights the figures of a row stand at.
HEIGHTS = """(rows) => [...document.querySelectorAll(rows)].slice(0, 3).map((row) => {
  const lines = [...row.querySelectorAll("td")].map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return [Math.round(cell.getBoundingClientRect().top), Math.round(range.getBoundingClientRect().top)];
  });
  const tops = new Map();
  for (const [cell, text] of lines) tops.set(cell, [...(tops.get(cell) ?? []), text]);
  return Math.max(...[...tops.values()].map((each) => new Set(each).size));
})"""

#: Figures whose digits stand on two lines.
BROKEN = """() => [...document.querySelectorAll(".columns td")].flatMap((cell) => {
  const text = cell.firstChild;
  return !text ? [] : [...text.data.matchAll(/[0-9][0-9.,]*/g)].filter((found) => {
    const range = document.createRange();
    range.setStart(text, found.index);
    range.setEnd(text, found.index + found[0].length);
    return range.getClientRects().length > 1;
  }).map((found) => found[0]);
})"""

#: Where each row of the module tree begins, by its level.
INDENTS = """() => [...document.querySelectorAll(".tree details")].reduce((lefts, fold) => {
  let level = 0;
  for (let each = fold.parentElement; each; each = each.parentElement) level += each.tagName === "DETAILS";
  (lefts[level] ??= []).push(Math.round(fold.getBoundingClientRect().left));
  return lefts;
}, [])"""

#: At most so many screens by their width and height in pixels, printed pages, and bytes of one page.
SCREENS = {(1300, 900): 6, (390, 844): 12}
SHEETS, BYTES = 20, 2_000_000
#: Where the parts of the first screen end.
FIRST = [".verdict", ".evidence", ".call", ".account table", ".advice", ".checks"]
ENDS = """(parts) => Object.fromEntries(parts.map((part) => [
  part, document.querySelector(`header ${part}`)?.getBoundingClientRect().bottom ?? null
]))"""


@pytest.fixture(scope="module")
def pages(
    reported: Callable[[Path], tuple[Path, Path]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """The page of a run by its name, or of one, of one with CUDA graphs and of a third side by side."""

    @cache
    def page(name: str) -> Path:
        if name in PAGES:
            return reported(PAGES[name])[0]
        folder = tmp_path_factory.mktemp("several")
        runs = [ROOT / VIT, ROOT / GRAPHED, folder / "h100-vit-max-autotune"]
        shutil.copytree(*runs[1:])
        done = invoke("compare", *runs, "--out", folder / "several.html")
        assert done.exit_code == 0, done.output
        return folder / "several.html"

    return page


@pytest.mark.parametrize("name", ["vit", "graphed", "several", "flux", "qwen"])
def test_a_page_is_quiet_answers_at_once_is_a_few_screens_a_few_sheets_and_not_heavy(pages, name):
    assert pages(name).stat().st_size < BYTES
    with opened(pages(name), width=1300) as visited:
        page = visited.page
        assert page.locator("figure.chart").count() >= 3
        if name in ("vit", "flux", "qwen"):
            ends = page.evaluate(ENDS, FIRST)
            assert {part for part, end in ends.items() if end is None or end > 900} == set()
        assert name == "several" or "faster compiled" in page.inner_text("body")
        page.emulate_media(media="print")
        assert 0 < page.pdf(format="A4").count(b"/Type /Page\n") <= SHEETS
        page.emulate_media(media="screen")
        for (width, height), most in SCREENS.items():
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_function("(most) => document.documentElement.scrollHeight <= most", arg=most * height)
        assert (visited.complaints, visited.requests) == ([], [])


@pytest.mark.parametrize("name", ["vit", "graphed", "several"])
def test_on_a_wide_screen_no_table_has_to_be_scrolled_and_paper_takes_the_page_at_its_full_size(pages, name):
    with opened(pages(name)) as visited:
        page = visited.page
        assert page.evaluate(SCROLLING) == []
        # As a browser does when it prints a page that was looked at: a sheet of A4 within its margins.
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 703, "height": 1000})
        assert page.evaluate("document.documentElement.scrollWidth") <= 703
        rights = "[...document.querySelectorAll('table, .chart')].map((each) => each.getBoundingClientRect().right)"
        assert max(page.evaluate(rights)) <= 704
        backs = "[...document.querySelectorAll('.scroll')].map((each) => getComputedStyle(each).backgroundImage)"
        assert {*page.evaluate(backs)} == {"none"}


@pytest.mark.parametrize("width", [400, 1280])
def test_each_level_of_the_module_tree_is_indented_further(pages, width):
    with opened(pages("flux"), width=width) as visited:
        visited.page.evaluate("document.querySelectorAll('.tree details').forEach((each) => { each.open = true; })")
        levels = visited.page.evaluate(INDENTS)
        assert len(levels) >= 5 and all(len({*lefts}) == 1 for lefts in levels)
        starts = [lefts[0] for lefts in levels]
        assert starts == sorted({*starts})


def test_a_finding_highlights_its_kernels_in_tree_groups_and_timelines(pages):
    with opened(pages("vit")) as visited:
        page, canvas = visited.page, visited.page.locator(".timelines canvas")
        page.click("#finding-lost_attention .lights")
        settle(page)
        (row,) = page.query_selector_all(".explorer tbody tr:not([hidden])")
        assert "attention" in row.inner_text()
        lit = [each.text_content() for each in page.query_selector_all(".tree summary.lit .name")]
        assert lit[-2:] == ["attention", "attention itself"] and len(lit) < page.locator(".tree summary").count()
        assert 0 < int(canvas.get_attribute("data-lit")) < int(canvas.get_attribute("data-drawn"))
        # Whatever is selected next ends it.
        row.click()
        settle(page)
        assert page.locator(".tree .lit, .lights[aria-pressed=true]").count() == 0
        assert (visited.complaints, visited.requests) == ([], [])


@pytest.mark.parametrize("width", [400, 1280])
def test_figures_beside_the_bars_of_a_waterfall_stand_clear_of_its_labels(pages, width):
    with opened(pages("graphed"), width=width) as visited:
        labels, figures, over = visited.page.evaluate(OVER_LABELS)
        assert labels == figures > 8
        assert over == 0


def test_on_a_phone_the_figures_of_several_forms_stand_in_lines_and_are_whole(pages):
    with opened(pages("several"), width=400) as visited:
        assert visited.page.evaluate(HEIGHTS, ".columns tbody tr") == [1, 1, 1]
        assert visited.page.evaluate(BROKEN) == []
        assert visited.page.evaluate(SCROLLING) == []


def test_on_a_phone_words_and_figures_of_a_kernel_group_stand_in_lines(pages):
    with opened(pages("vit"), width=400) as visited:
        assert visited.page.evaluate(HEIGHTS, ".explorer tbody tr") == [1, 1, 1]
