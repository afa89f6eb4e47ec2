"""What steers a terminal reaches it from no sweep."""

import shutil
from pathlib import Path

import pytest
from tests.cli.runs import ROOT, edited
from tests.cli.runs import invoke as run

from ...cli.test_printable import EVIL, assert_harmless


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_places_that_are_not_there_or_hold_something_else(folder: Path) -> None:
    (folder / EVIL).mkdir()
    (folder / EVIL / f"{EVIL}one.json").write_text("{}")
    assert_harmless(run("sweep", "--show", f"missing{EVIL}"))
    held = run("sweep", "--show", EVIL)
    assert_harmless(held)
    assert held.exit_code != 0


@pytest.mark.parametrize("words", [(EVIL, "--batch-size", f"1,{EVIL}"), ("--suite", EVIL)])
def test_what_was_typed(words: tuple[str, ...]) -> None:
    assert_harmless(run("sweep", *words))


def test_a_sweep_of_a_stranger(folder: Path) -> None:
    cells = folder / f"sweep{EVIL}" / "cells"
    cells.mkdir(parents=True)
    source = next((ROOT / "sweeps" / "h200-qwen2.5-vl" / "cells").glob("*.json"))
    with edited(Path(shutil.copy(source, cells / "evil.json"))) as told:
        told["cell"]["request"] |= {"workload": EVIL, "prompt": EVIL, "scope": EVIL}
        told |= {"run": None, "outcome": "failed"}
        told["failure"] = {"kind": "failed", "message": EVIL, "during": EVIL, "last_lines": [EVIL]}
    (cells / f"broken{EVIL[:20]}.json").write_text("{")
    result = run("sweep", "--show", cells.parent)
    assert_harmless(result)
    assert result.exit_code == 0
