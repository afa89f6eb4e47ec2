"""docs/numbers.md leaves out nothing that reports and JSON hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from tracekit.cli.main import main
from tracekit.model.analysis import FAMILIES, IDLE_CAUSES
from tracekit.model.comparison import BoundKind, MatchedBy
from tracekit.model.timing import StopReason
from tracekit.report.schemas import schema
from tracekit.report.sections.overview import COUNTS

from .texts import DOCS, ROOT

NUMBERS = (DOCS / "numbers.md").read_text(encoding="utf-8")
#: What is no figure: where a side came from, and what the reports say in words.
WORDS = {"schema", "label", "path", "settings", "environment", "components", "warnings", "grave", "operators", "steps"}


def keys(name: Any, *within: str) -> set[str]:
    """The keys that the schema has at a place."""
    told = schema(name)
    for key in within:
        told = resolved(told, name)["properties"][key]
    return set(resolved(told, name)["properties"])


def resolved(told: dict[str, Any], name: Any) -> dict[str, Any]:
    told = next((each for each in told.get("anyOf", ()) if each.get("type") != "null"), told)
    return schema(name)["$defs"][told["$ref"].rsplit("/", 1)[-1]] if "$ref" in told else told


def missing(names: set[str]) -> list[str]:
    return sorted(name for name in names if not re.search(rf"\b{re.escape(name)}\b", NUMBERS))


@pytest.mark.parametrize(
    ("name", "within"),
    [
        ("analysis", ()),
        ("comparison", ()),
        ("comparison", ("verdict",)),
        ("comparison", ("deltas",)),
        ("comparison", ("waterfall",)),
        ("comparison", ("a",)),
        ("comparison", ("a", "per_step")),
    ],
)
def test_every_key_is_defined(name: str, within: tuple[str, ...]) -> None:
    assert missing(keys(name, *within) - WORDS) == []


#: Maps whose keys are data: sizes by the name of an input, versions by package, facts by the code that they belong to.
MAPS = {"inputs", "packages", "facts"}


def written_keys(told: Any) -> set[str]:
    """All keys of a JSON, however deep."""
    if isinstance(told, list):
        return {key for each in told for key in written_keys(each)}
    if not isinstance(told, dict):
        return set()
    return {*told}.union(*(written_keys(value) for key, value in told.items() if key not in MAPS))


def test_every_key_that_a_real_run_writes_is_defined(tmp_path: Path) -> None:
    run = str(ROOT / "traces" / "h200-vit")
    found = set()
    for words in (["compare", run, "--out", str(tmp_path)], ["analyze", run]):
        path = tmp_path / f"{words[0]}.json"
        done = CliRunner().invoke(main, [*words, "--json", str(path)])
        assert done.exit_code == 0, done.output
        found |= written_keys(json.loads(path.read_text(encoding="utf-8")))
    assert len(found) > 250
    assert {"first_divergence", "predicted_speedup", "calls_us", "all_activities"} <= found
    assert missing(found) == []


def test_every_row_of_the_side_by_side_table_is_defined() -> None:
    assert [label for label in COUNTS if label.removeprefix("Memory ") not in NUMBERS] == []


def test_every_finding_is_listed() -> None:
    files = (ROOT / "tracekit" / "comparison" / "findings").glob("*.py")
    codes = {code for file in files for code in re.findall(r'code=.*?"(\w+)"', file.read_text(encoding="utf-8"))}
    assert len(codes) >= 20
    assert missing(codes) == []


def test_every_word_that_stands_for_a_rule_is_said() -> None:
    assert missing({*FAMILIES, *get_args(StopReason), *get_args(MatchedBy)}) == []
    idle, bounds = ((DOCS / page).read_text(encoding="utf-8") for page in ("idle.md", "bounds.md"))
    assert [cause for cause in IDLE_CAUSES if f"`{cause}`" not in idle] == []
    assert [kind for kind in get_args(BoundKind) if f"`{kind}`" not in bounds] == []
