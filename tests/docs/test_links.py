"""Every local link of README, CHANGELOG and docs leads somewhere, and pictures are small."""

from __future__ import annotations

from pathlib import Path

import pytest

from .texts import DOCS, PAGES, anchors, links

#: Made when the site is built.
GENERATED = {"changelog.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_local_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        missing = not target.exists() and place not in GENERATED
        if missing or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    assert [page.name for page in DOCS.rglob("*.md") if page.name not in menu] == []


def test_every_schema_is_linked() -> None:
    linked = {link for page in PAGES for link in links(page)}
    assert {f"schemas/{path.name}" for path in (DOCS / "schemas").glob("*.json")} <= linked


def test_every_picture_is_shown_and_all_of_them_are_small() -> None:
    pictures = list((DOCS / "pictures").iterdir())
    shown = {Path(link).name for page in PAGES for link in links(page)}
    assert [path.name for path in pictures if path.name not in shown] == []
    assert sum(path.stat().st_size for path in pictures) < 200_000
