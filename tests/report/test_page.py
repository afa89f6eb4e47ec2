import base64
import hashlib
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from tests.report.showing import comparison_page, text_of, unpacked, written

from tracekit.model.provenance import KernelSources

from ..browser import open_page
from ..sides import make_run
from .conftest import cpu_comparison, hostile_comparison, timed_comparison

COMMAND = "tracekit profile flux --compiled"
CHARTS = ("waterfall", "family-times", "family-counts", "idle-causes")


class Elements(HTMLParser):
    """The elements of a page in order, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def timed_page() -> str:
    return comparison_page(timed_comparison(), make_run(), COMMAND)


def test_the_page_begins_with_the_answer():
    page = timed_page()
    assert page.startswith("<!doctype html>") and len(page.encode()) < 1_000_000
    assert '<h1 class="faster">1.50× faster compiled</h1>' in page
    text = text_of(page)
    assert "flux · full size · NVIDIA H200 · bfloat16 · batch 1 · 512×512 · 2 denoising steps · random weights" in text
    for told in ("95 % CI", "Size chosen: full, the largest that fits", "The weights are random.", COMMAND):
        assert told in text


def test_every_chart_has_a_table_and_a_description():
    elements = Elements(timed_page())
    assert tuple(each["id"] for each in elements.of("figure") if each.get("class") == "chart") == CHARTS
    assert all(each["aria-label"] for each in elements.of("div") if each.get("role") == "img")
    assert len(elements.of("caption")) == len(elements.of("table")) > len(CHARTS)
    assert all(each.get("scope") in ("col", "row") for each in elements.of("th"))


def test_the_page_forbids_itself_the_network_and_any_script_but_its_own():
    page = timed_page()
    policy = next(each["content"] for each in Elements(page).of("meta") if "http-equiv" in each) or ""
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy
    script = page.rsplit("<script>", 1)[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert "unsafe-eval" not in policy
    for element, attributes in Elements(page).found:
        for name in ("src", "href", "action", "data"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), (element, attributes)


def test_hostile_names_make_no_elements():
    page = comparison_page(hostile_comparison())
    elements = Elements(page)
    assert not elements.of("img")
    # What rows open to, and the page's own.
    assert len(elements.of("script")) == 2
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "{{ 7 * 7 }}" in page
    assert "\u202e" not in page and "\x1b" not in page


def test_what_rows_open_to_is_packed_and_escaped_too():
    source = "@triton.jit\ndef k():  # </pre><script>alert(1)</script>\u202e"
    comparison = hostile_comparison()
    name = comparison.groups[0].b[0].name
    b = replace(comparison.b, kernel_sources=KernelSources(1, "2.13.0", {name: (source,)}))
    opened = unpacked(comparison_page(replace(comparison, b=b)))
    assert not any(Elements(opened).of(element) for element in ("script", "img"))
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)" in opened and "\u202e" not in opened
    assert f'data-of="group-{len(comparison.groups) - 1}"' in opened


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_draws_the_charts_without_network_or_complaint(tmp_path, width, dark):
    visit = open_page(written(tmp_path, timed_page()), width=width, dark=dark)
    assert (visit.complaints, visit.requests, visit.charts, visit.spilled) == ((), (), CHARTS, ())
    assert visit.overflow_px <= 0


@pytest.mark.browser
def test_a_browser_without_scripts_shows_every_table(tmp_path):
    visit = open_page(written(tmp_path, timed_page()), scripts=False)
    assert (visit.complaints, visit.requests, visit.charts) == ((), (), CHARTS)
    # What is folded opens without scripts too.
    assert "Kernel groups, per" in visit.text


@pytest.mark.browser
def test_a_browser_opens_a_page_without_charts(tmp_path):
    page = comparison_page(cpu_comparison(), make_run())
    assert not any(f'id="{absent}"' in page for absent in ("kernels", "idle"))
    visit = open_page(written(tmp_path, page))
    assert (visit.complaints, visit.requests, visit.charts) == ((), (), ())
