from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.tracefile.corpus import CORPUS, TEXT, Damaged

from tracekit.cli.main import main

FIGURES = ("gpu", "kernels", "launches", "copies")


def analyzed(path: Path) -> tuple[int, str, dict[str, Any]]:
    """Exit code, what was said, and the JSON; anything but a line of error is a failure here."""
    result = CliRunner().invoke(main, ["analyze", str(path), "--json", "-", "--no-cache"], catch_exceptions=True)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stderr, json.loads(result.stdout) if result.stdout else {}


@cache
def sound_figures(folder: Path) -> dict[str, Any]:
    (folder / "sound.json").write_bytes(TEXT)
    code, _, found = analyzed(folder / "sound.json")
    assert code == 0
    return {key: without_names(found[key]) for key in FIGURES}


def without_names(figures: dict[str, Any]) -> dict[str, Any]:
    """Damage inside a name changes the name, and may make one kernel's its own."""
    return {key: value for key, value in figures.items() if key not in ("top", "unique", "by_family")}


@pytest.mark.parametrize("damaged", CORPUS, ids=[each.name for each in CORPUS])
def test_no_damaged_trace_gives_a_wrong_number_unsaid(damaged: Damaged, tmp_path: Path) -> None:
    content = damaged.content()
    assert content != TEXT
    (tmp_path / damaged.name).write_bytes(content)
    code, said, found = analyzed(tmp_path / damaged.name)
    severities = {each["severity"] for each in found.get("health", ())}
    if damaged.promise == "refused":
        assert (code, found) == (1, {})
        assert said.startswith("error: ")
        return
    assert ("error" in severities) == (code == 1) == ("said" in damaged.promise), (code, found["health"])
    if "whole" in damaged.promise:
        assert {key: without_names(found[key]) for key in FIGURES} == sound_figures(tmp_path)
