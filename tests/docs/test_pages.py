"""Every local link of README, CHANGELOG and docs leads somewhere, and pictures are small."""

import importlib
import re
from pathlib import Path
from typing import get_args

import pytest

import tracekit.comparison.findings  # noqa: F401
from tracekit.model.analysis import FAMILIES, IDLE_CAUSES
from tracekit.model.comparison import BoundKind, FindingStatement, MatchedBy
from tracekit.model.note import Note
from tracekit.model.timing import StopReason
from tracekit.report.sections.figures import COUNTS
from tracekit.report.words.common import cause_words
from tracekit.wings import WINGS

from .texts import DOCS, PAGES, ROOT, anchors, links, prose

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
    assert sum(path.stat().st_size for path in pictures) < 300_000


def test_readme_is_read_in_five_minutes() -> None:
    text = re.sub(r"<!--.*?-->", "", prose(ROOT / "README.md"), flags=re.DOTALL)
    assert len(text.split()) <= 900


@pytest.mark.parametrize("name", ["architecture.md", "contributing.md"])
def test_every_python_file_that_a_page_names_exists_unless_its_reader_makes_it(name: str) -> None:
    files = [
        f"/{path.relative_to(ROOT).as_posix()}" for top in ("tracekit", "tests") for path in (ROOT / top).rglob("*.py")
    ]
    named = set(re.findall(r"[\w./]+\.py\b", (DOCS / name).read_text(encoding="utf-8")))
    made = {path for path in named if path.endswith("short_kernels.py")} if name == "contributing.md" else set()
    assert [path for path in named - made if not any(file.endswith(f"/{path}") for file in files)] == []


def test_every_note_is_listed_and_no_other() -> None:
    found = re.findall(r"^\| `(\w+)` \|", (DOCS / "note-codes.md").read_text(encoding="utf-8"), re.MULTILINE)
    tops = [ROOT / top.replace(".", "/") for top in ("tracekit", *WINGS)]
    names = ("notes.py", "statements.py")
    paths = [path for top in tops for name in ("statements/**/[!_]*.py", *names) for path in sorted(top.rglob(name))]
    for path in paths:
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert sorted(found) == sorted(Note.classes)


def test_every_row_finding_and_word_that_stands_for_a_rule_is_defined() -> None:
    numbers = (DOCS / "numbers.md").read_text(encoding="utf-8")
    assert [label for label in COUNTS if label.removeprefix("Memory ") not in numbers] == []
    words = {*FindingStatement.classes, *FAMILIES, *get_args(StopReason), *get_args(MatchedBy)}
    assert [word for word in words if not re.search(rf"\b{re.escape(word)}\b", numbers)] == []
    idle, bounds = ((DOCS / page).read_text(encoding="utf-8") for page in ("idle.md", "bounds.md"))
    assert [cause for cause in IDLE_CAUSES if f"`{cause}`" not in idle] == []
    assert [kind for kind in get_args(BoundKind) if f"`{kind}`" not in bounds] == []


def test_the_glossary_has_each_cause_of_idle_time_by_the_word_of_the_screens() -> None:
    glossary = (DOCS / "glossary.md").read_text(encoding="utf-8").replace("*", "")
    assert [cause for cause in IDLE_CAUSES if f"{cause_words(cause)} (`{cause}`)" not in glossary] == []
