"""The page as somebody uses it: sorting, searching, a phone, paper, a screen reader."""

from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests.report.showing import comparison_page, comparisons_page, side_page, written

from tracekit.comparison.looking import look_at

from ..browser import Opened, opened, settle
from ..sides import make_run
from .conftest import (
    hostile_comparison,
    many_groups_comparison,
    matched_comparison,
    three_times_matched,
    timed_comparison,
)

pytestmark = pytest.mark.browser

COMMAND = "tracekit profile x --compiled"
ROWS = ".explorer tbody tr:not([hidden])"

#: What cannot be seen or scrolled to: cells that reach out of what holds them, where nothing scrolls.
UNREACHABLE = """() => [...document.querySelectorAll("th, td, caption")].filter((cell) => {
  const box = cell.getBoundingClientRect(), place = cell.closest(".scroll");
  if (!box.width || getComputedStyle(cell.closest("thead") ?? cell).position === "absolute") return false;
  const edge = place.getBoundingClientRect();
  const scrolls = place.classList.contains("wider") && place.tabIndex === 0;
  const cut = box.right > edge.right + 1 || cell.scrollWidth > cell.clientWidth + 1;
  return edge.right > innerWidth + 1 || (!scrolls && cut);
}).map((cell) => cell.textContent.trim().slice(0, 60))"""

#: Which parts are unfolded, and the page as it was then, but for the order of its tables.
REMEMBER = "window.folds = new Map([...document.querySelectorAll('details')].map((each) => [each, each.open]))"
PUT_BACK = """() => {
  document.querySelectorAll("details").forEach((each) => { each.open = window.folds.get(each); });
  history.replaceState(null, "", location.pathname);
  document.activeElement.blur();
  scrollTo(0, 0);
}"""


@pytest.fixture(scope="module")
def matched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two real recordings of ViT-B/16."""
    page = comparison_page(matched_comparison(), make_run(), COMMAND)
    return written(tmp_path_factory.mktemp("matched"), page)


@pytest.fixture(scope="module")
def shared(matched: Path) -> Iterator[Opened]:
    """That page, opened once for the tests that leave it as it can be put back."""
    with opened(matched) as visited:
        visited.page.evaluate(REMEMBER)
        yield visited


@pytest.fixture(scope="module")
def phone(matched: Path) -> Iterator[Opened]:
    """That page on a narrow, dark screen."""
    with opened(matched, width=400, dark=True) as visited:
        yield visited


@pytest.fixture
def page(shared: Opened) -> Iterator[Any]:
    """That page with nothing chosen, searched, unfolded or scrolled to; its tables stay sorted. Whatever a test does
    with it, nothing is asked for and nothing complains."""
    shared.page.fill(".explorer input", "")
    shared.page.keyboard.press("Escape")
    shared.page.set_viewport_size({"width": 1280, "height": 900})
    shared.page.evaluate(PUT_BACK)
    yield shared.page
    assert was_quiet(shared)


def columns(page: Any, at: int) -> list[str]:
    return [row.query_selector_all("th, td")[at].inner_text() for row in page.query_selector_all(ROWS)]


def figures(page: Any) -> list[float]:
    return [float(each.get_attribute("data-value")) for each in page.query_selector_all(f"{ROWS} td:nth-child(6)")]


def was_quiet(visited: Opened) -> bool:
    return visited.complaints == [] and visited.requests == []


def test_kernel_groups_are_sorted_by_any_column_both_ways(page):
    page.click(".explorer thead button:text-is('time A')")
    values = figures(page)
    assert values == sorted(values, reverse=True) and len(set(values)) > 3
    assert page.get_attribute(".explorer th[aria-sort]", "aria-sort") == "descending"
    page.click(".explorer thead button:text-is('time A')")
    assert figures(page) == sorted(values)
    page.click(".explorer thead button:text-is('Change kind')")
    kinds = columns(page, 1)
    assert kinds == sorted(kinds)
    assert page.locator(".explorer th[aria-sort]").count() == 1


def test_kernel_groups_are_searched_by_every_word_in_names_places_and_members(page):
    every = page.locator(ROWS).count()
    page.fill(".explorer input", "DEFUSED anchors")
    assert columns(page, 1) == ["defused"]
    assert page.inner_text(".explorer [role=status]") == f"1 of {every} groups match"
    # Kernels are found though they are shown only where a row is opened.
    page.fill(".explorer input", "triton_poi_fused_gelu")
    assert [name.split("\n")[0] for name in columns(page, 0)] == ["x12: 1 kernel -> 1 Triton (gelu)"]
    page.fill(".explorer input", "no such kernel")
    assert page.locator(ROWS).count() == 0
    page.fill(".explorer input", "")
    assert page.locator(ROWS).count() == every


def test_the_table_is_used_by_keyboard_alone(page):
    page.focus(".explorer input")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('th').textContent") == "Kernels"
    page.keyboard.press("Enter")
    assert page.get_attribute(".explorer thead th", "aria-sort") == "ascending"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("/")
    assert page.input_value(".explorer input") == "/", "who writes is not interrupted"
    page.fill(".explorer input", "")
    second = page.locator(f"{ROWS} .opens").nth(1)
    second.focus()
    page.keyboard.press("Enter")
    assert second.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.activeElement.id") == "drawer"
    assert page.locator(".drawer li").count() > 1
    page.keyboard.press("Escape")
    assert not page.is_visible(".drawer")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    assert page.evaluate("document.activeElement.textContent") == second.text_content()


#: What pieces of the page tell each other of groups.
LISTEN = """() => {
  window.told = [];
  document.addEventListener("tracekit:group", (event) => told.push(event.detail));
}"""


def test_a_group_opens_by_a_click_and_tells_the_timeline(page):
    page.evaluate(LISTEN)
    page.click("#group-1 td >> nth=0")
    assert page.is_visible(".drawer") and page.evaluate("location.hash") == "#group-1"
    assert page.inner_text(".drawer h2").split("\n") == page.inner_text("#group-1 .opens").split("\n")
    page.click(".drawer button:text-is('Show in the timeline')")
    told = [{"group": 1, "from": "groups"}, {"group": 1, "from": "groups", "show": True}]
    assert page.evaluate("window.told") == told
    page.click("#group-1 td >> nth=0")
    assert not page.is_visible(".drawer") and page.evaluate("address.id") == ""


def test_on_a_narrow_screen_the_row_stays_in_view_above_its_drawer(page):
    page.set_viewport_size({"width": 390, "height": 800})
    row, drawer = page.locator("#group-1"), page.locator(".drawer")
    row.evaluate("(each) => each.scrollIntoView({ block: 'end' })")
    row.locator(".opens").click()
    assert row.bounding_box()["y"] + row.bounding_box()["height"] <= drawer.bounding_box()["y"] + 1


PIN = """(group) => document.dispatchEvent(
  new CustomEvent("tracekit:group", { detail: { group, from: "timeline" } })
)"""


def test_a_kernel_pinned_in_the_timeline_opens_its_group_and_nothing_moves(page):
    page.evaluate("document.querySelector('.timelines canvas').focus()")
    before = page.evaluate("scrollY")
    page.evaluate(PIN, 2)
    assert page.get_attribute(".explorer tr.chosen", "id") == "group-2" and page.is_visible(".drawer")
    assert page.evaluate("[scrollY, document.activeElement.tagName]") == [before, "CANVAS"]
    page.evaluate(PIN, 65_535)
    assert not page.is_visible(".drawer")


def test_the_address_of_a_group_opens_it_though_its_row_was_not_shown(tmp_path):
    with opened(written(tmp_path, comparison_page(many_groups_comparison())), at="#group-57") as visited:
        page = visited.page
        assert page.is_visible("#group-57") and page.get_attribute(".explorer tr.chosen", "id") == "group-57"
        assert 0 < page.evaluate("document.querySelector('#group-57').getBoundingClientRect().top") < 900
        assert was_quiet(visited)


#: Stands for what the browser would hold: a clipboard shared with the machine is not read here.
CLIPBOARD = """(there) => {
  const write = async (text) => { window.copied = text; };
  const value = there ? { writeText: write } : undefined;
  Object.defineProperty(navigator, "clipboard", { value, configurable: true });
  document.execCommand = () => { window.copied = document.activeElement.value; return true; };
  window.copied = null;
}"""


def test_a_command_is_copied_with_a_clipboard_and_without(page):
    page.click("#command summary")
    for clipboard in (True, False):
        page.evaluate(CLIPBOARD, clipboard)
        page.click("#command .copy")
        page.wait_for_selector("#command .copy:text-is('Copied')")
        assert page.evaluate("window.copied") == COMMAND
        assert page.evaluate("document.activeElement.className") == "copy"
        page.wait_for_selector("#command .copy:not(:text-is('Copied'))")


def test_many_groups_are_shown_when_asked_for_and_all_are_searched(tmp_path):
    with opened(written(tmp_path, comparison_page(many_groups_comparison()))) as visited:
        page = visited.page
        assert page.locator(ROWS).count() == 10
        page.fill(".explorer input", "kernel_59")
        assert len(columns(page, 0)) == 1
        page.fill(".explorer input", "")
        page.click(".explorer button.every")
        assert page.locator(ROWS).count() == 60
        assert page.get_attribute(".explorer button.every", "aria-expanded") == "true"
        assert was_quiet(visited)


def test_hostile_names_are_found_as_they_are_written_and_do_nothing(tmp_path):
    with opened(written(tmp_path, comparison_page(hostile_comparison()))) as visited:
        page = visited.page
        for name in ("<script>alert(1)</script>", "onerror=\"document.title='taken'\"", "'\"` | `;"):
            page.fill(".explorer input", name)
            assert page.locator(ROWS).count() >= 1, name
        page.fill(".explorer input", "")
        for button in page.query_selector_all(".explorer thead button"):
            button.click()
        unfold(page)
        assert page.locator(ROWS).count() == len(hostile_comparison().groups)
        assert page.title() != "taken"
        assert "\u202e" not in page.content()
        assert was_quiet(visited)


@pytest.mark.parametrize("width", [1280, 820, 720])
def test_the_name_of_a_side_is_not_broken_in_the_head_of_the_account(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    lines = page.eval_on_selector_all(
        ".account thead .number",
        """(heads) => heads.map((head) => {
          const range = document.createRange();
          range.selectNodeContents(head);
          return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
        })""",
    )
    assert len(lines) >= 3 and {*lines} == {1}


def test_no_cell_is_out_of_reach_and_the_page_does_not_scroll_sideways(page):
    for width in (320, 400, 700, 900):
        page.set_viewport_size({"width": width, "height": 900})
        assert_all_in_reach(page)


def assert_all_in_reach(page: Any) -> None:
    unfold(page)
    assert page.evaluate(UNREACHABLE) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def unfold(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    settle(page)


@cache
def other_page(name: str) -> str:
    """One side by itself, and three times the same pair."""
    comparison = matched_comparison()
    if name == "one":
        return side_page(look_at(comparison.b), None, "x")
    return comparisons_page(three_times_matched(), "x")


@pytest.mark.parametrize(("name", "charts", "width", "dark"), [("one", 3, 1280, False), ("several", 6, 390, True)])
def test_pages_of_one_side_and_of_several_are_drawn_and_in_reach_on_any_screen(tmp_path, name, charts, width, dark):
    with opened(written(tmp_path, other_page(name)), width=width, dark=dark) as visited:
        for each in (width, 390, 1280):
            visited.page.set_viewport_size({"width": each, "height": 900})
            assert_all_in_reach(visited.page)
            assert visited.page.locator("figure.chart").count() == charts
        visited.page.set_viewport_size({"width": width, "height": 900})
        assert violations(visited.page, WEIGHTY) == []
        assert was_quiet(visited)


def test_on_a_phone_each_figure_stands_beside_the_name_of_its_column(phone):
    label = "getComputedStyle(document.querySelector('#figures tbody td'), '::before').content"
    assert phone.page.evaluate(label) == '"A: vit_eager"'
    phone.page.evaluate("document.querySelector('#figures table').scrollIntoView()")
    roles = "[...document.querySelectorAll('#figures table [role]')].map((each) => each.getAttribute('role'))"
    assert {*phone.page.evaluate(roles)} == {"row", "cell", "rowheader", "columnheader", "rowgroup"}


@cache
def axe() -> str:
    """The accessibility checker's script, from the package that the test extra brings."""
    pytest.importorskip("axe_playwright_python")
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


WEIGHTY = ("serious", "critical", "moderate")


def violations(
    page: Any, impacts: tuple[str | None, ...] = (*WEIGHTY, "minor", None), parts: tuple[str, ...] = ("html",)
) -> list[str]:
    page.evaluate(axe())
    run = "(parts) => axe.run({ include: parts.map((each) => [each]) }, { resultTypes: ['violations'] })"
    found = page.evaluate(run, parts)["violations"]
    told = [f"{each['id']}: {each['nodes'][0]['html'][:120]} ({len(each['nodes'])})" for each in found]
    return [words for words, each in zip(told, found, strict=True) if each["impact"] in impacts]


@pytest.mark.parametrize("screen", ["shared", "phone"])
def test_a_checker_for_accessibility_finds_nothing_of_weight(screen, request):
    page = request.getfixturevalue(screen).page
    unfold(page)
    assert violations(page, WEIGHTY) == []
    page.click("#group-1 .opens")
    # What that changes is the row and its drawer.
    assert page.is_visible(".drawer")
    assert violations(page, WEIGHTY, parts=(".explorer", ".drawer")) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.keyboard.press("Escape")


def test_on_paper_the_page_is_light_whole_and_without_controls(tmp_path):
    page = comparison_page(timed_comparison(), make_run(), "x")
    with opened(written(tmp_path, page), width=700, dark=True, media="print") as visited:
        told = visited.page.evaluate(
            """() => ({
              back: getComputedStyle(document.body).backgroundColor,
              ink: getComputedStyle(document.documentElement).getPropertyValue("--ink").trim(),
              controls: getComputedStyle(document.querySelector(".controls")).display,
              wide: document.documentElement.scrollWidth - innerWidth,
            })"""
        )
        assert told == {"back": "rgb(255, 255, 255)", "ink": "#1d2126", "controls": "none", "wide": 0}
        of_bar = "getComputedStyle(document.querySelector('.chart .bar'))"
        assert visited.page.evaluate(f"{of_bar}.printColorAdjust") == "exact"


def test_what_is_folded_opens_for_paper_and_closes_again(page):
    shut = "[...document.querySelectorAll('main details:not([open])')].filter((each) => !each.closest('.tree')).length"
    before = page.evaluate(shut)
    assert before > 3
    assert page.evaluate(f"dispatchEvent(new Event('beforeprint')); {shut}") == 0
    assert page.evaluate(f"dispatchEvent(new Event('afterprint')); {shut}") == before


#: What the page can do when it has been read, before anything long was begun.
WHEN_READ = """addEventListener("DOMContentLoaded", () => {
  document.querySelector(".explorer thead button").click();
  window.whenRead = {
    drawn: document.documentElement.dataset.timelines,
    sorted: document.querySelector(".explorer th[aria-sort]") !== null,
    heights: [...document.querySelectorAll("figure")].map((each) => each.offsetHeight),
    timelines: document.querySelector(".timelines canvas").offsetHeight,
    page: document.documentElement.scrollHeight,
  };
})"""


def test_the_page_answers_before_its_timelines_are_drawn_and_nothing_moves_when_they_are(matched):
    with opened(matched, script=WHEN_READ) as visited:
        page = visited.page
        before = page.evaluate("whenRead")
        assert (before["drawn"], before["sorted"]) == ("drawing", True)
        after = page.evaluate("[...document.querySelectorAll('figure')].map((each) => each.offsetHeight)")
        assert after == pytest.approx(before["heights"], abs=2)
        assert page.evaluate("document.querySelector('.timelines canvas').offsetHeight") == before["timelines"] > 50
        assert page.evaluate("document.documentElement.scrollHeight") == pytest.approx(before["page"], abs=2)
        assert was_quiet(visited)


#: How far below what stays on top a place is.
BELOW = """(place) => document.querySelector(place).getBoundingClientRect().top
  - document.querySelector("nav").getBoundingClientRect().bottom"""


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_a_link_lands_on_what_it_leads_to_below_what_stays_on_top(matched, width):
    with opened(matched, at="#families", width=width) as visited:
        page = visited.page
        for place in ("#families", "#timelines", f"#{page.get_attribute('.findings li', 'id')}", "#groups"):
            page.evaluate("(place) => { location.hash = place; }", place)
            settle(page)
            assert page.evaluate(BELOW, place) == pytest.approx(0, abs=2), place
        assert was_quiet(visited)
