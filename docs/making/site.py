"""What mkdocs does besides: the changes become a page, committed runs are shown by theirs, and no page may ask for
anything from elsewhere."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.making.reports import REPORTS, write_reports

ROOT = Path(__file__).parents[2]
#: Warnings end a strict build.
LOG = logging.getLogger("mkdocs.hooks.site")

#: A link to a report, which lies beside docs/ as markdown and on the site as a page.
REPORT = re.compile(r"\]\(\.\./reports/([\w.-]+)\.md\)")
#: What a browser fetches by itself: scripts, styles, pictures, fonts; no links that a reader may follow.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|link(?![^>]*rel="?canonical))[^>]*\s(?:src|href)="?(https?:)?//[^\s">]+"""
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """CHANGELOG.md lies where people look for it, beside the README; its links lead from there into docs/."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changelog.md", content=text.replace("](docs/", "](")))
    write_reports()
    for page in REPORTS.glob("*.html"):
        files.append(File.generated(config, f"reports/{page.name}", content=page.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to reports open their pages."""
    return REPORT.sub(r"](reports/\1.html)", markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Says which page would fetch something over the network."""
    for found in FETCHED.finditer(output):
        LOG.warning("%s fetches from elsewhere: %s", page.file.src_path, found.group())
    return output
